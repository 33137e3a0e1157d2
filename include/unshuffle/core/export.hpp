// What users of the shared library may call: everything that include/unshuffle declares. The rest stays hidden.
#pragma once

/// Placed before the name of a namespace; applies to what that namespace block declares.
#define UNSHUFFLE_EXPORT __attribute__((visibility("default")))
