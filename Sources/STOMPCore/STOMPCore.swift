// STOMPCore
