// What users of the shared library may call: everything that include/unshuffle declares. The rest stays hidden.
#pragma once

/// Stands in front of the name of a namespace and holds for what that namespace declares there.
#define UNSHUFFLE_EXPORT __attribute__((visibility("default")))
