// Pictures and the Siamese model.
#pragma once

#include "unshuffle/pixels/picture.hpp"
#include "unshuffle/pixels/picture_files.hpp"
#include "unshuffle/pixels/siamese.hpp"
