#ifndef SAFELIGHT_CPQ_H
#define SAFELIGHT_CPQ_H
#include <libpq-fe.h>
#endif
