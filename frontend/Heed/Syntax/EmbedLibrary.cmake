# Writes OUTPUT, a C++ file that holds the text of FILES (a list, sorted by the caller).
set(body "#include \"frontend/Heed/Syntax/Library.h\"\n\nstatic const heed::LibraryFile files[] = {\n")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND body "    {\"${name}\", R\"heed(${text})heed\"},\n")
endforeach()
string(APPEND body "};\n\nllvm::ArrayRef<heed::LibraryFile> heed::libraryFiles() { return files; }\n")
file(WRITE ${OUTPUT} "${body}")
