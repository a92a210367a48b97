// SPDX-License-Identifier: Apache-2.0
// The smallest NVTX tool: prints each range of a domain as NVTX hands it over.
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// Handles are the tool's own: copies of the names.
static nvtxDomainHandle_t NVTX_API create_domain(const char* name) {
  return (nvtxDomainHandle_t)strdup(name);
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char* text) {
  (void)domain;
  return (nvtxStringHandle_t)strdup(text);
}

static int NVTX_API push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const int registered = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  const int unsigned_payload = event->payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  printf("push %s %s %llu\n", (const char*)domain,
         registered ? (const char*)event->message.registered : "(unregistered)",
         unsigned_payload ? (unsigned long long)event->payload.ullValue : 0ULL);
  fflush(stdout);
  return 0;
}

static int NVTX_API pop(nvtxDomainHandle_t domain) {
  printf("pop %s\n", (const char*)domain);
  fflush(stdout);
  return 0;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const NvtxExportTableCallbacks* callbacks =
      (const NvtxExportTableCallbacks*)get(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table;
  unsigned size = 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
  *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  return 1;
}
