# cmake -D NM=... -D OBJCOPY=... -D ARCHIVE=... -P own_eigen.cmake: gives the instances of Eigen's templates in a static
# library names of their own. The library is compiled for one processor and with OpenMP, its users perhaps for another
# and without. Both instantiate the same templates, of which a linker keeps one per name, and its sizes and
# alignments would be wrong for the other side.
execute_process(COMMAND ${NM} --format=just-symbols ${ARCHIVE} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n_Z(Z|GVZ)?NK?5Eigen[^\n]*" symbols "\n${symbols}")
list(REMOVE_DUPLICATES symbols)
string(REGEX REPLACE "\n([^\n;]+);?" "\\1 unshuffle\\1\n" renamed "${symbols}")
file(WRITE ${ARCHIVE}.eigen "${renamed}")
execute_process(COMMAND ${OBJCOPY} --redefine-syms=${ARCHIVE}.eigen ${ARCHIVE} COMMAND_ERROR_IS_FATAL ANY)
