/* Provides the compiler flags of LibRaw; CRaw includes the library itself. */
