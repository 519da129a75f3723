/* thriffty in the place of heFFTe 2.4: the standard library as programs of heFFTe find it. MIT OR
 * Apache-2.0.
 *
 * They include heffte.h and use what heFFTe's headers bring along, streams and containers among it.
 * So this is a list for them, not of what the headers here need.
 */
#ifndef THRIFFTY_HEFFTE_UTILS_H
#define THRIFFTY_HEFFTE_UTILS_H

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <ostream>
#include <random>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpi.h>

#endif
