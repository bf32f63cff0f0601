// SPDX-License-Identifier: Apache-2.0
// What load arrives: when, how long, and what of it is alike? Arrival times, length distributions and traces
// of real services, for those who send load and those who simulate it. Values from files, flags and a seed;
// no clock, no socket, no thread.
#pragma once

#include "workload/arrivals.h"
#include "workload/distribution.h"
#include "workload/trace.h"
