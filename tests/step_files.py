"""Small STEP files, written by OCCT."""

from math import pi


class StepAssembly:
    """Products and their instances; lengths are millimetres."""

    def __init__(self):
        from OCP.TCollection import TCollection_ExtendedString
        from OCP.TDocStd import TDocStd_Document
        from OCP.XCAFDoc import XCAFDoc_DocumentTool

        self.document = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
        self.shapes = XCAFDoc_DocumentTool.ShapeTool_s(self.document.Main())
        self.layers = XCAFDoc_DocumentTool.LayerTool_s(self.document.Main())

    def product(self, name, shape=None):
        """A product with a shape, or an assembly."""
        made = self.shapes.NewShape() if shape is None else self.shapes.AddShape(shape, False)
        return self.named(made, name)

    def put(self, assembly, product, name=None, at=(0, 0, 0), degrees=0):
        """An instance of a product in an assembly, turned about z."""
        made = self.shapes.AddComponent(assembly, product, location(at, degrees))
        return self.named(made, name) if name else made

    def layer(self, product, name):
        from OCP.TCollection import TCollection_ExtendedString

        self.layers.SetLayer(product, TCollection_ExtendedString(name))

    def named(self, label, name):
        from OCP.TCollection import TCollection_ExtendedString
        from OCP.TDataStd import TDataStd_Name

        TDataStd_Name.Set_s(label, TCollection_ExtendedString(name))
        return label

    def write(self, path, unit="MM", schema="AP214IS"):
        from OCP.Interface import Interface_Static
        from OCP.STEPCAFControl import STEPCAFControl_Writer

        writer = STEPCAFControl_Writer()
        Interface_Static.SetCVal_s("write.step.unit", unit)
        Interface_Static.SetCVal_s("write.step.schema", schema)
        writer.SetNameMode(True)
        writer.SetLayerMode(True)
        self.shapes.UpdateAssemblies()
        assert writer.Perform(self.document, str(path))
        return path


def location(at=(0, 0, 0), degrees=0):
    from OCP.gp import gp_Ax1, gp_Dir, gp_Pnt, gp_Trsf, gp_Vec
    from OCP.TopLoc import TopLoc_Location

    motion = gp_Trsf()
    motion.SetRotation(gp_Ax1(gp_Pnt(0, 0, 0), gp_Dir(0, 0, 1)), degrees * pi / 180)
    motion.SetTranslationPart(gp_Vec(*map(float, at)))
    return TopLoc_Location(motion)


def block(*size):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox

    return BRepPrimAPI_MakeBox(*map(float, size)).Shape()


def cylinder(radius, height):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCylinder

    return BRepPrimAPI_MakeCylinder(float(radius), float(height)).Shape()


def sphere(radius):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeSphere

    return BRepPrimAPI_MakeSphere(float(radius)).Shape()


def cone(low, high, height):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCone

    return BRepPrimAPI_MakeCone(float(low), float(high), float(height)).Shape()


def torus(ring, tube):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeTorus

    return BRepPrimAPI_MakeTorus(float(ring), float(tube)).Shape()


def rounded_block(size, radius):
    """A block with all edges rounded."""
    from OCP.BRepFilletAPI import BRepFilletAPI_MakeFillet
    from OCP.TopAbs import TopAbs_ShapeEnum

    from abut.io.models.step_mesh import explored

    shape = block(*size)
    fillet = BRepFilletAPI_MakeFillet(shape)
    for edge in explored(shape, TopAbs_ShapeEnum.TopAbs_EDGE):
        fillet.Add(float(radius), edge)
    return fillet.Shape()


def drilled_block():
    """A block with a slanted hole, whose rims are curves without a formula."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCylinder
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    axes = gp_Ax2(gp_Pnt(10, 10, -10), gp_Dir(0.2, 0.1, 1))
    drill = BRepPrimAPI_MakeCylinder(axes, 4.0, 60.0).Shape()
    return BRepAlgoAPI_Cut(block(30, 30, 20), drill).Shape()


def vase():
    """A solid with a spline surface through wavy sections."""
    from math import cos, sin

    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeEdge, BRepBuilderAPI_MakeWire
    from OCP.BRepOffsetAPI import BRepOffsetAPI_ThruSections
    from OCP.collections import HArray1_gp_Pnt
    from OCP.GeomAPI import GeomAPI_Interpolate
    from OCP.gp import gp_Pnt

    sections = BRepOffsetAPI_ThruSections(True, False)
    for height, radius in ((0, 5), (10, 8), (20, 3), (30, 6)):
        points = HArray1_gp_Pnt(1, 12)
        for k in range(12):
            angle = k * pi / 6
            wavy = radius * (1 + 0.3 * cos(3 * angle))
            points.SetValue(k + 1, gp_Pnt(wavy * cos(angle), wavy * sin(angle), height))
        curve = GeomAPI_Interpolate(points, True, 1e-6)
        curve.Perform()
        edge = BRepBuilderAPI_MakeEdge(curve.Curve()).Edge()
        sections.AddWire(BRepBuilderAPI_MakeWire(edge).Wire())
    sections.Build()
    return sections.Shape()


def compound(*shapes):
    """Shapes as one shape; each is a shape or (shape, location)."""
    from OCP.BRep import BRep_Builder
    from OCP.TopoDS import TopoDS_Compound

    made, builder = TopoDS_Compound(), BRep_Builder()
    builder.MakeCompound(made)
    for shape in shapes:
        body = shape[0].Located(shape[1]) if isinstance(shape, tuple) else shape
        builder.Add(made, body)
    return made


def first_face(shape):
    from OCP.TopAbs import TopAbs_ShapeEnum

    from abut.io.models.step_mesh import explored

    return next(explored(shape, TopAbs_ShapeEnum.TopAbs_FACE))
