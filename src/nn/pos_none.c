/* No positions: a stack without them is equivariant under permutations of its input. */
#include "nn/position.h"

const qkv_position_scheme qkv_position_none = {.name = "none"};
