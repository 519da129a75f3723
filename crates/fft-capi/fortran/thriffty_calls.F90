! The calls of the module thriffty for each kind of integers and logicals that a program may have by
! default. MIT OR Apache-2.0.
!
! To a module that uses several of these modules, calls of one name are one generic call.

#define STATUS_KIND int32
#define CALLS thriffty_calls_4
#include "thriffty_calls.inc"
#define CALLS thriffty_calls_4_4
#define INTEGER_KIND int32
#include "thriffty_calls_of_integers.inc"
#define CALLS thriffty_calls_8_4
#define INTEGER_KIND int64
#include "thriffty_calls_of_integers.inc"
#undef STATUS_KIND

#define STATUS_KIND int64
#define CALLS thriffty_calls_8
#include "thriffty_calls.inc"
#define CALLS thriffty_calls_4_8
#define INTEGER_KIND int32
#include "thriffty_calls_of_integers.inc"
#define CALLS thriffty_calls_8_8
#define INTEGER_KIND int64
#include "thriffty_calls_of_integers.inc"
#undef STATUS_KIND
