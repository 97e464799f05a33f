#ifndef SAFELIGHT_CCRYPTO_H
#define SAFELIGHT_CCRYPTO_H
#include <openssl/evp.h>
#include <openssl/hmac.h>
#endif
