extern "C" int ncclGetVersion(int* version) {
  *version = FAKE_VERSION;
  return 0;
}
