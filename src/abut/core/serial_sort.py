"""A sort of a few thousand keys within a kernel, by one thread."""

import warp as wp


@wp.func_native("""
    const int steps[] = {8861, 3938, 1750, 701, 301, 132, 57, 23, 10, 4, 1};  // of a shell sort
    for (int step : steps)
        for (int i = step; i < count; ++i) {
            const auto key = keys.data[i];
            const auto value = values.data[i];
            int at = i;
            for (; at >= step && keys.data[at - step] > key; at -= step) {
                keys.data[at] = keys.data[at - step];
                values.data[at] = values.data[at - step];
            }
            keys.data[at] = key;
            values.data[at] = value;
        }
""")
def sort_serially(keys: wp.array[wp.int64], values: wp.array[wp.int32], count: wp.int32):
    """Sort so many keys ascending, and values with them; equal keys in no order."""
    ...
