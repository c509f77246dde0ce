#include <iostream>

#include "trainer/tools/checkpoint_tool.h"

int main(int argc, char** argv) {
  return pliant::RunCheckpointTool(argc, argv, std::cout, std::cerr);
}
