// All device kernels: one translation unit, for the device's compiler and for the host's.
// Who may include: what compiles them. Includes: the kernels.
#pragma once
#include "cells.h"
#include "elementwise.h"
#include "fused.h"
#include "images.h"
#include "lines.h"
#include "lists.h"
#include "matrices.h"
#include "products.h"
#include "random.h"
#include "reductions.h"
#include "rows.h"
#include "updates.h"
#include "walks.h"
