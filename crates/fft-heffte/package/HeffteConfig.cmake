# Heffte::Heffte is thriffty with the headers of heFFTe's C++ interface. Its components are FFTW and
# MKL, which are the same, and CUDA, which brings the backend cufft and needs FindCUDAToolkit.

get_filename_component(_root "${CMAKE_CURRENT_LIST_DIR}/../../../../../.." ABSOLUTE)

include(CMakeFindDependencyMacro)
find_dependency(MPI COMPONENTS CXX)
find_dependency(thriffty CONFIG PATHS "${_root}/lib/cmake/thriffty" NO_DEFAULT_PATH)

set(Heffte_FFTW_FOUND TRUE)
set(Heffte_MKL_FOUND TRUE)
# The stock backend.
set(Heffte_BUILTIN_FOUND TRUE)
if("CUDA" IN_LIST Heffte_FIND_COMPONENTS)
    find_package(CUDAToolkit QUIET)
    set(Heffte_CUDA_FOUND ${CUDAToolkit_FOUND})
endif()
foreach(_component IN LISTS Heffte_FIND_COMPONENTS)
    if(NOT Heffte_${_component}_FOUND AND Heffte_FIND_REQUIRED_${_component})
        set(Heffte_FOUND FALSE)
        set(Heffte_NOT_FOUND_MESSAGE "thriffty in the place of heFFTe does not have the component ${_component}")
    endif()
endforeach()

if(NOT TARGET Heffte::Heffte)
    add_library(Heffte::Heffte INTERFACE IMPORTED)
    set_target_properties(Heffte::Heffte PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${_root}/include/thriffty/heffte"
        INTERFACE_COMPILE_FEATURES cxx_std_11
        INTERFACE_LINK_LIBRARIES "thriffty::thriffty;MPI::MPI_CXX")
endif()
if(Heffte_CUDA_FOUND)
    set_property(TARGET Heffte::Heffte PROPERTY INTERFACE_COMPILE_DEFINITIONS THRIFFTY_HEFFTE_CUDA)
    set_property(TARGET Heffte::Heffte APPEND PROPERTY INTERFACE_LINK_LIBRARIES CUDA::cudart)
endif()
