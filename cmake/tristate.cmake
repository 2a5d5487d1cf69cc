# repdl_tristate(VARIABLE): makes the variable's value ON, OFF or AUTO, from any constant that CMake takes for true or
# false, or AUTO, in upper or lower case. Anything else is an error.
function(repdl_tristate variable)
  string(TOUPPER "${${variable}}" value)
  if(value STREQUAL "AUTO")
    set(${variable} AUTO PARENT_SCOPE)
  elseif("${value}")
    set(${variable} ON PARENT_SCOPE)
  elseif(value MATCHES "^(|0|OFF|NO|FALSE|N|IGNORE|NOTFOUND|.*-NOTFOUND)$")
    set(${variable} OFF PARENT_SCOPE)
  else()
    message(FATAL_ERROR "${variable}: expected AUTO, ON or OFF, got '${${variable}}'")
  endif()
endfunction()
