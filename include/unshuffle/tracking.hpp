// Tracking by detection: sequences, motion, trackers, scores.
#pragma once

#include "unshuffle/tracking/box.hpp"
#include "unshuffle/tracking/camera.hpp"
#include "unshuffle/tracking/confidence.hpp"
#include "unshuffle/tracking/evaluation.hpp"
#include "unshuffle/tracking/metrics.hpp"
#include "unshuffle/tracking/model_file.hpp"
#include "unshuffle/tracking/motion.hpp"
#include "unshuffle/tracking/sequence.hpp"
#include "unshuffle/tracking/sort.hpp"
#include "unshuffle/tracking/support.hpp"
#include "unshuffle/tracking/tracker.hpp"
#include "unshuffle/tracking/train.hpp"
