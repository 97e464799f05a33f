#ifndef SAFELIGHT_CZEROMQ_H
#define SAFELIGHT_CZEROMQ_H
#include <sys/eventfd.h>
#include <zmq.h>
#endif
