/* The program of the hand-written model. */
#include "runtime/host.h"

extern const heed_model_desc fake_model;

int main(int argc, char **argv) {
  return heed_program_main(&fake_model, argc, argv);
}
