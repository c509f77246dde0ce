#pragma once

#include "operator/planner/reasons.h"

namespace pliant::planner {

// Why a job that has a place in the sharing has this size.
Reason WhyPlaced(const ReasonFacts& facts);

// The same for a job whose demand is reached: names the limit of the demand.
Reason AtDemand(const ReasonFacts& facts);

// The limit that keeps it from more learners, once cooldowns and minimum runtimes have ended.
GrowthLimit WhatLimits(const ReasonFacts& facts);

}  // namespace pliant::planner
