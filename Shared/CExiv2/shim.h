/* Provides the compiler flags of exiv2; CMetadata includes the library itself. */
