# OBJECTS (separated by |) hold no body of an operation's kernel, and HOT does: the example that brings operations of its
# own. NM lists the names that an object defines.

set(body "engram::(internal::)?(host_step|[a-z_]*kernel)<[^(]*>::(forward|backward|advance)(_columns<[^(]*)?\\(")

# bodies(<out> <object>): the bodies that it defines.
function(bodies out object)
  execute_process(COMMAND "${NM}" -C --defined-only "${object}" RESULT_VARIABLE status OUTPUT_VARIABLE names)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${NM} cannot read ${object}")
  endif()
  string(REGEX MATCHALL "${body}" found "${names}")
  # The base of every kernel, whose backward does nothing.
  list(FILTER found EXCLUDE REGEX "engram::kernel<")
  list(REMOVE_DUPLICATES found)
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

bodies(found "${HOT}")
if(NOT found)
  message(FATAL_ERROR "no body is found where there are some: ${HOT}")
endif()
string(REPLACE "|" ";" OBJECTS "${OBJECTS}")
if(NOT OBJECTS)
  message(FATAL_ERROR "there is no object to look at")
endif()
foreach(object IN LISTS OBJECTS)
  bodies(found "${object}")
  if(found)
    message(SEND_ERROR "${object} compiles these to run once; they belong into program/compiled_operations.hpp: ${found}")
  endif()
endforeach()
