// FCS files, gates, scales and simulated cells.
#pragma once

#include "unshuffle/cytometry/compensation.hpp"
#include "unshuffle/cytometry/event_table.hpp"
#include "unshuffle/cytometry/fcs.hpp"
#include "unshuffle/cytometry/gating.hpp"
#include "unshuffle/cytometry/simulate.hpp"
#include "unshuffle/cytometry/transform.hpp"
