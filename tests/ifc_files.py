"""Small IFC files, written by IfcOpenShell."""

import numpy as np


class IfcHouse:
    """An IFC file with one storey; lengths are given in its unit."""

    def __init__(self, schema="IFC4", prefix=None):
        import ifcopenshell

        self.file = make = ifcopenshell.file(schema=schema)
        self.axes = self.frame((0.0, 0.0, 0.0))
        context = make.createIfcGeometricRepresentationContext(
            None, "Model", 3, 1e-5, self.axes, None
        )
        self.context = make.createIfcGeometricRepresentationSubContext(
            "Body", "Model", None, None, None, None, context, None, "MODEL_VIEW", None
        )
        units = [make.createIfcSIUnit(None, "LENGTHUNIT", prefix, "METRE")]
        self.history = None
        if schema == "IFC2X3":
            person = make.createIfcPerson(None, "Doe")
            firm = make.createIfcOrganization(None, "Firm")
            owner = make.createIfcPersonAndOrganization(person, firm)
            tool = make.createIfcApplication(firm, "1", "tests", "tests")
            self.history = make.createIfcOwnerHistory(
                owner, tool, None, "ADDED", None, None, None, 0
            )
        project = self.rooted("IfcProject", "project")
        project.RepresentationContexts = [context]
        project.UnitsInContext = make.createIfcUnitAssignment(units)
        self.storey = self.rooted("IfcBuildingStorey", "ground floor")
        self.storey.ObjectPlacement = self.placement((0.0, 0.0, 0.0))
        self.aggregate(project, [self.storey])
        self.contained = []

    def rooted(self, kind, name=None, **values):
        from ifcopenshell import guid

        made = self.file.create_entity(kind, GlobalId=guid.new(), **values)
        made.OwnerHistory, made.Name = self.history, name
        return made

    def aggregate(self, whole, parts, kind="IfcRelAggregates"):
        return self.rooted(kind, RelatingObject=whole, RelatedObjects=parts)

    def frame(self, at, turned=False):
        point = self.file.createIfcCartesianPoint(tuple(map(float, at)))
        up = self.file.createIfcDirection((0.0, 0.0, 1.0))
        along = self.file.createIfcDirection((0.0, 1.0, 0.0) if turned else (1.0, 0.0, 0.0))
        return self.file.createIfcAxis2Placement3D(point, up, along)

    def placement(self, at, turned=False):
        return self.file.createIfcLocalPlacement(None, self.frame(at, turned))

    def block(self, size):
        """A box from the origin."""
        x, y, z = map(float, size)
        middle = self.file.createIfcCartesianPoint((x / 2, y / 2))
        axes = self.file.createIfcAxis2Placement2D(middle, None)
        return self.extruded(self.file.createIfcRectangleProfileDef("AREA", None, axes, x, y), z)

    def cylinder(self, radius, height):
        axes = self.file.createIfcAxis2Placement2D(self.file.createIfcCartesianPoint((0.0, 0.0)))
        profile = self.file.createIfcCircleProfileDef("AREA", None, axes, float(radius))
        return self.extruded(profile, height)

    def extruded(self, profile, height):
        up = self.file.createIfcDirection((0.0, 0.0, 1.0))
        return self.file.createIfcExtrudedAreaSolid(profile, self.axes, up, float(height))

    def body(self, item, kind="SweptSolid"):
        return self.file.createIfcShapeRepresentation(self.context, "Body", kind, [item])

    def mapped(self, body, at=(0.0, 0.0, 0.0)):
        """A function that makes further representations of the same shape."""
        source = self.file.createIfcRepresentationMap(self.axes, body)

        def use():
            point = self.file.createIfcCartesianPoint(tuple(map(float, at)))
            target = self.file.createIfcCartesianTransformationOperator3D(
                None, None, point, None, None
            )
            return self.body(self.file.createIfcMappedItem(source, target), "MappedRepresentation")

        return use

    def element(self, kind, name, body=None, at=(0.0, 0.0, 0.0), *, turned=False, stored=True):
        """A product at a place, in the storey unless told otherwise."""
        made = self.rooted(kind, name)
        made.ObjectPlacement = self.placement(at, turned)
        if body is not None:
            made.Representation = self.file.createIfcProductDefinitionShape(None, None, [body])
        if stored:
            self.contained.append(made)
        return made

    def write(self, path):
        self.rooted(
            "IfcRelContainedInSpatialStructure",
            RelatedElements=self.contained,
            RelatingStructure=self.storey,
        )
        self.file.write(str(path))
        return path


def world(model, part):
    """The vertices of a part in the model's frame."""
    return model.meshes[part.mesh].vertices @ part.pose[:3, :3].T + part.pose[:3, 3]


def bounds(model, part):
    points = world(model, part)
    return np.round([points.min(axis=0), points.max(axis=0)], 9).tolist()
