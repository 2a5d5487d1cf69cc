#include "reference/samples/binary64.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

#include "reference/samples/detail.hpp"

namespace repdl::reference {
namespace {

using detail::odd_of;
__extension__ using wide = unsigned __int128;
constexpr dtype f64 = dtype::f64;

// The hardest of the published inputs that were found: the lists of CORE-MATH (core-math.gitlabpages.inria.fr, src/binary64/NAME/NAME.wc, of
// February 2025), which name as their sources V. Lefevre's tests of libms (vinc17.net/research/testlibm) and BaCSeL; those of exp from
// the tables of Lefevre and Muller, too. `bits` were computed anew, with MPFR, as a test does it again.
constexpr hard_operands published[] = {
    {"exp", {0x1.9e9cbbfd6080bp-31}, 58},
    {"exp", {-0x1.4bd46601ae1efp-31}, 56},
    {"exp", {0x1.ba07d73250de7p-14}, 56},
    {"exp", {-0x1.6ff486dc6f81ap-24}, 56},
    {"exp", {0x1.accfbe46b4efp-1}, 55},
    {"exp", {0x1.6a4d1af9cc989p-8}, 55},
    {"exp", {0x1.282aae3169ee7p-20}, 55},
    {"exp", {-0x1.0401ae48409b5p-28}, 54},
    {"exp", {0x1.aca7ae8da5a7bp+0}, 54},
    {"exp", {-0x1.54c9218baa581p+3}, 54},
    {"exp", {0x1.836b2fff6d6cbp-33}, 54},
    {"exp", {0x1.d086543694c5ap-1}, 54},
    {"exp2", {0x1.e4596526bf94dp-10}, 60},
    {"exp2", {0x1.e76049073067fp-10}, 58},
    {"exp2", {0x1.8fea81fb7512ep-6}, 58},
    {"exp2", {0x1.568e8cec4f66cp-29}, 58},
    {"exp2", {0x1.1380388fd8942p-33}, 57},
    {"exp2", {-0x1.bc7a709d1a2adp-36}, 57},
    {"exp2", {-0x1.87f65352ea0d5p-42}, 57},
    {"exp2", {0x1.93998f2295764p-21}, 57},
    {"exp2", {-0x1.a306a55b8606ap-29}, 57},
    {"exp2", {0x1.9aa887abfb167p-22}, 56},
    {"expm1", {0x1.274bbf1efb1a2p-10}, 59},
    {"expm1", {0x1.51fce10251a48p-16}, 58},
    {"expm1", {0x1.a31972381bd0cp-23}, 57},
    {"expm1", {-0x1.6e9b2675a667ep-44}, 57},
    {"expm1", {0x1.6e9b2675a65cfp-44}, 57},
    {"expm1", {0x1.1a4d6f93a29efp-24}, 57},
    {"expm1", {-0x1.19e53fcd490dp-23}, 57},
    {"expm1", {0x1.3988e1409212ep-51}, 57},
    {"expm1", {-0x1.3988e1409212fp-51}, 57},
    {"expm1", {-0x1.555b5316cb345p-17}, 56},
    {"log", {0x1.fd15daa6ce332p+732}, 62},
    {"log", {0x1.9476e304cd7c7p-384}, 61},
    {"log", {0x1.be87838f1a47cp+774}, 61},
    {"log", {0x1.613955dc802f8p-35}, 61},
    {"log", {0x1.b7f71a488641ap+340}, 61},
    {"log", {0x1.6b3d29c0f9e6ep+543}, 61},
    {"log", {0x1.d6a413a59c7eap+502}, 61},
    {"log", {0x1.a8346abf875c7p-815}, 60},
    {"log", {0x1.91f8729a9282bp-574}, 60},
    {"log", {0x1.c573e7d6a51cap-512}, 60},
    {"log2", {0x1.1ba39ff28e3eap+7}, 55},
    {"log2", {0x1.b4ebe40c95a01p+0}, 54},
    {"log2", {0x1.d30a43773dd1bp+511}, 54},
    {"log10", {0x1.e12d66744ff81p+429}, 69},
    {"log10", {0x1.ed8c87c3bf5cfp-49}, 63},
    {"log10", {0x1.758976044bfd1p+157}, 62},
    {"log10", {0x1.c295d530e7d8fp+184}, 62},
    {"log10", {0x1.24b2c846f6cb4p+272}, 62},
    {"log10", {0x1.6ddf7a58b47e1p+275}, 62},
    {"log10", {0x1.83e55c0285c96p-762}, 62},
    {"log10", {0x1.365116686b078p-765}, 62},
    {"log10", {0x1.b2981b787b622p+580}, 61},
    {"log10", {0x1.f1db8c56d5e76p+342}, 61},
    {"log1p", {0x1.200000000001bp-46}, 90},
    {"log1p", {0x1.080000000016bp-42}, 78},
    {"log1p", {0x1.1400000000633p-40}, 72},
    {"log1p", {0x1.2c00000000753p-40}, 72},
    {"log1p", {0x1.02000000015abp-38}, 67},
    {"log1p", {0x1.0e000000017bbp-38}, 66},
    {"log1p", {0x1.1a000000019e3p-38}, 66},
    {"log1p", {0x1.2600000001c23p-38}, 66},
    {"log1p", {0x1.05000000058b3p-36}, 61},
    {"log1p", {0x1.2f0000000778bp-36}, 60},
    {"rsqrt", {0x1.a6a9cc15abccep+0}, 58},
    {"rsqrt", {0x1.c562b857453ddp+1}, 54},
    {"rsqrt", {0x0.fffffffffffffp-1022}, 53},
    {"sin", {0x1.598bae9e632f6p-7}, 60},
    {"sin", {0x1.1fa4f6c3eb138p+10}, 57},
    {"sin", {0x1.1c63df63d59dp-2}, 57},
    {"sin", {0x1.021b4c18f7825p+1023}, 55},
    {"sin", {0x1.d98c4c612718dp-1}, 55},
    {"sin", {0x1.514e2bafe01d2p+10}, 55},
    {"sin", {0x1.c1c27d6b9a3a1p+5}, 55},
    {"sin", {0x1.3ed15577189e6p+9}, 54},
    {"sin", {0x1.55a1feaa926f1p-16}, 54},
    {"sin", {0x1.1031fb019618p-8}, 54},
    {"cos", {0x1.34ec2f9fc9cp+1}, 59},
    {"cos", {0x1.6b8a6273d7c21p+0}, 55},
    {"cos", {0x1.16e534ee3658p-4}, 54},
    {"cos", {0x1.37b1311fb4936p-22}, 54},
    {"cos", {0x1.2842c0b84f504p+8}, 54},
    {"cos", {0x1.e08483e377304p+1}, 54},
    {"cos", {0x1.f849414ea93b6p-6}, 54},
    {"cos", {0x1.5e5c1cd6c4e6fp-22}, 54},
    {"cos", {0x1.a3838e4f7d423p+6}, 54},
    {"cos", {0x1.c62c5d3d000c3p-6}, 54},
    {"tanh", {0x1.e0000000000e1p-22}, 79},
    {"tanh", {0x1.68000000017bbp-19}, 64},
    {"tanh", {0x1.ac343b179fec4p-3}, 60},
    {"tanh", {0x1.1375c272d441cp+1}, 57},
    {"tanh", {0x1.30842605350a2p-21}, 57},
    {"tanh", {0x1.c3f025670d6a7p-22}, 56},
    {"tanh", {0x1.291c601a05276p-2}, 55},
    {"tanh", {0x1.0a90d36059a04p-6}, 55},
    {"tanh", {0x1.d12ed0af1a27fp-27}, 54},
    {"tanh", {0x1.880072ccb1051p-11}, 54},
    {"erf", {0x1.51f3182edb17ap-36}, 61},
    {"erf", {0x1.52b76545cc8efp-6}, 56},
    {"erf", {0x1.2759b6d41c68ep-29}, 56},
    {"erf", {0x1.4ccfc024723e7p-35}, 55},
    {"erf", {0x1.4142994626b71p-16}, 55},
    {"erf", {0x1.3a013a3c71e92p+0}, 55},
    {"erf", {0x1.a9faca76c6e89p-5}, 55},
    {"erf", {0x1.2112a62300adfp-44}, 55},
    {"erf", {0x1.4edbd3445930dp-8}, 55},
    {"erf", {0x1.e4bcaa3d6ae35p-7}, 55},
    {"erfc", {0x1.32cf39dceda5ap-16}, 59},
    {"erfc", {0x1.8bc46e0d85524p-9}, 59},
    {"erfc", {-0x1.c2117d7da5d67p-31}, 58},
    {"erfc", {-0x1.544fa6d47b39p-52}, 58},
    {"erfc", {-0x1.106c2cd5ea6c3p-9}, 58},
    {"erfc", {-0x1.6c196b0b4ae04p+1}, 58},
    {"erfc", {0x1.207abad544f4dp-35}, 58},
    {"erfc", {0x1.52b18fe8fbad1p-36}, 57},
    {"erfc", {0x1.76bd4d0e5284cp+0}, 57},
    {"erfc", {0x1.5b68f2177617bp-28}, 57},
    {"hypot", {0x1.1732e04bf1488p-1, 0x1.0b590d18d9545p-27}, 63},
    {"hypot", {0x1.9a4d68bfabb24p-1, 0x1.441841c2157f4p-27}, 61},
    {"hypot", {0x1.82e5c2faa9fdcp-1, 0x1.3ab7223afd2dbp-27}, 61},
    {"hypot", {0x1.23810a4fe8244p-1, 0x1.112d03efd5b11p-27}, 60},
    {"hypot", {0x1.4b1ed41047c17p-1, 0x1.2325be3d7708bp-27}, 60},
    {"hypot", {0x1.6861b3ab0bc67p-1, 0x1.2fbd51cf7b0bcp-27}, 60},
    {"hypot", {0x1.c74ed9638bc16p-1, 0x1.55683baa0be4fp-27}, 60},
    {"hypot", {0x1.85e5ab86aad3ep-1, 0x1.d3456f627eaa7p-25}, 60},
    {"atan2", {0x1.07a11ffd843abp+53, 0x1.f9982dddc9cccp+52}, 101},
    {"atan2", {0x1.fdfe11f61919cp+74, 0x1.53feb7b3de47bp+52}, 98},
    {"atan2", {0x1.2981ce8381491p+52, 0x1.4efd17defb8d1p+52}, 97},
    {"atan2", {0x1.2d3d9a4b9aefap+70, 0x1.4534432011dc4p+51}, 97},
    {"atan2", {0x1.8c48c7e9f59bbp+69, 0x1.4c7775f720a8dp+53}, 97},
    {"atan2", {0x1.ea018dddc111dp+71, 0x1.88f9e3de5d6d3p+53}, 96},
    {"atan2", {0x1.5047c4426721bp+76, 0x1.9ada1a85962dfp+52}, 95},
    {"atan2", {0x1.bdcba7c10415cp+74, 0x1.e58dc28ff472fp+52}, 94},
    {"tan", {0x1.dffffffffff1fp-22}, 79},
    {"tan", {0x1.67fffffffe845p-19}, 64},
    {"tan", {0x1.50486b2f87014p-5}, 58},
    {"tan", {0x1.c839011a23cb6p-9}, 56},
    {"tan", {0x1.c9f47908c3178p-3}, 55},
    {"tan", {0x1.ec9baf60b9f7cp-25}, 55},
    {"tan", {0x1.7efa565652033p-5}, 54},
    {"tan", {0x1.a29d9c7b6fbedp-19}, 54},
    {"asin", {0x1.c373ff4aad79bp-14}, 58},
    {"asin", {0x1.7137449123ef6p-26}, 55},
    {"asin", {0x1.522bffce02485p-19}, 55},
    {"asin", {0x1.5363d5cd68131p-13}, 54},
    {"asin", {0x1.2231aea708e6ep-14}, 54},
    {"asin", {0x1.ab4d373bb9c21p-19}, 53},
    {"asin", {0x1.860db11c8df3bp-16}, 53},
    {"asin", {0x1.3217783d70d1dp-14}, 53},
    {"acos", {0x1.53ea6c7255e88p-4}, 58},
    {"acos", {0x1.cf37d41c69889p-24}, 56},
    {"acos", {0x1.2c759e3848cc8p-13}, 55},
    {"acos", {0x1.ae48c77beb466p-13}, 54},
    {"acos", {0x1.dbd7b9e27ed71p-6}, 54},
    {"acos", {0x1.59d20f7f204a5p-5}, 54},
    {"acos", {0x1.7151512be14bep-19}, 54},
    {"acos", {0x1.4182199998587p-1}, 54},
    {"atan", {0x1.22e8d75e2bc7fp-11}, 60},
    {"atan", {0x1.0f6e5d9960397p-2}, 55},
    {"atan", {0x1.24bc9e13c9b57p+4}, 54},
    {"atan", {0x1.0dc89a3b5501p-7}, 54},
    {"atan", {0x1.0a402fcc79299p-25}, 54},
    {"atan", {0x1.204b6133bd682p-18}, 53},
    {"atan", {0x1.1668b390f3622p-2}, 53},
    {"atan", {0x1.250bfe1b082f5p-26}, 53},
    {"sinh", {0x1.897374d74de2ap-13}, 57},
    {"sinh", {0x1.bcee70ebe7ec9p-25}, 56},
    {"sinh", {0x1.0dc68d5e8f959p-3}, 55},
    {"sinh", {0x1.9147ff03dfb3p-1}, 55},
    {"sinh", {0x1.0805c7b507885p-2}, 55},
    {"sinh", {0x1.e72460254649ap-19}, 55},
    {"sinh", {0x1.92a2ee78ed49cp-23}, 55},
    {"sinh", {0x1.c7a8b9cdc1ba9p-11}, 54},
    {"cosh", {0x1.ea5f2f2e4b0c5p+1}, 58},
    {"cosh", {0x1.da5df035e5e8dp-22}, 57},
    {"cosh", {0x1.dea0b0c844078p-11}, 56},
    {"cosh", {0x1.a7880e4eee076p-13}, 56},
    {"cosh", {0x1.743d5609348acp+4}, 56},
    {"cosh", {0x1.0cf01d3f9f5e4p-11}, 55},
    {"cosh", {0x1.b44dba31c9521p-10}, 55},
    {"cosh", {0x1.03923f2b47c07p-1}, 55},
    {"atanh", {0x1.a6a58d55e307bp-26}, 55},
    {"atanh", {0x1.fd51bf2069fep-25}, 55},
    {"atanh", {0x1.c74847a112b61p-25}, 54},
    {"atanh", {0x1.e392d38a11f37p-11}, 54},
    {"atanh", {0x1.b3f61bc925b8bp-11}, 54},
    {"atanh", {0x1.11bcbb5e5c818p-11}, 53},
    {"atanh", {0x1.d12ed0af1a27fp-27}, 53},
    {"atanh", {0x1.7ad077887ee33p-10}, 53},
    {"cbrt", {0x1.9b78223aa307cp+1}, 56},
    {"cbrt", {0x1.a202bfc89ddffp-1}, 55},
    {"cbrt", {0x1.00357fdfa5412p+0}, 51},
    {"cbrt", {0x1.05b93f3e0caf9p+0}, 51},
    {"cbrt", {0x1.e24ad800f33a2p+0}, 51},
    {"cbrt", {0x1.b7abfd282ff33p+1}, 50},
    {"cbrt", {0x1.577a288016fdap+1}, 50},
    {"cbrt", {0x1.c22b300602884p+0}, 50},
    {"exp10", {0x1.a83b1cf77989p-26}, 61},
    {"exp10", {0x1.7c3ddd23ac8cap-10}, 59},
    {"exp10", {0x1.df760b2cdeed3p-49}, 59},
    {"exp10", {0x1.aa6e0810a7c29p-2}, 59},
    {"exp10", {-0x1.f38d3497c750ap-23}, 58},
    {"exp10", {0x1.ca3d76530c29bp-17}, 57},
    {"exp10", {-0x1.9ef920bed31b3p-8}, 56},
    {"exp10", {-0x1.d8832c6795363p-52}, 56},
    {"sinpi", {0x1.45435c15060dcp-1022}, 52},
    {"sinpi", {0x0.a2a1ae0a8306ep-1022}, 52},
    {"sinpi", {0x1.23e754fd0a5f9p-50}, 52},
    {"sinpi", {0x1.c71a4134d7c04p-50}, 52},
    {"sinpi", {0x1.933b4bbf93afp-50}, 52},
    {"sinpi", {0x1.3d83d0c25d597p-1022}, 51},
    {"cospi", {0x1.8242846e3d0afp-24}, 58},
    {"cospi", {0x1.ccf6429be6621p-29}, 55},
    {"cospi", {0x1.8f346b4c305bfp-28}, 54},
    {"cospi", {0x1.192cf274b2b7p-24}, 53},
    {"cospi", {0x1.ae77cc45f8687p-24}, 53},
    {"cospi", {0x1.ccf6429be6622p-29}, 53},
    {"cospi", {0x1.30e5cded67cafp-27}, 53},
    {"cospi", {0x1.4b00cb56dbc65p-26}, 52},
    {"tanpi", {0x1.45435c15060dcp-54}, 54},
    {"tanpi", {0x1.1673192fc2c52p-50}, 53},
    {"tanpi", {0x1.45435c15060dcp-55}, 53},
    {"tanpi", {0x1.c8d21d17927fbp-52}, 53},
    {"tanpi", {0x1.5498f33fafefp-51}, 53},
    {"tanpi", {0x1.35c4456fb4a52p-53}, 52},
    {"tanpi", {0x1.33136cad0cb97p-51}, 52},
    {"tanpi", {0x1.3d83d0c25d597p-53}, 52},
};

// Found by searches. Of g phi(x): for some 10^4 x the g that continued fractions of phi(x) give, to the nearest odd multiple of half an
// ulp. Of one operand: some 10^9 numbers, by second differences.
constexpr hard_operands found[] = {
    {"sigmoid", {0x1.1e0c3c48a746dp+4}, 34},
    {"sigmoid", {0x1.03bf886cd3b63p+4}, 32},
    {"sigmoid", {-0x1.4f445e6957a3dp-1}, 31},
    {"sigmoid", {-0x1.b9f63db3c8a85p-1}, 31},
    {"log_sigmoid", {-0x1.aa7af7ef82c14p-1}, 32},
    {"log_sigmoid", {0x1.0eed23ae00674p+4}, 30},
    {"log_sigmoid", {0x1.2652f9bcee11ap+4}, 29},
    {"log_sigmoid", {-0x1.4fe448354b824p+2}, 29},
    {"silu", {0x1.33574de0eb2fap+4}, 32},
    {"silu", {0x1.8ddfce76797e8p+1}, 32},
    {"silu", {0x1.24671555b83bfp+3}, 31},
    {"silu", {-0x1.68016dd4e6851p+1}, 30},
    {"gelu", {-0x1.73968559a2397p+2}, 30},
    {"gelu", {0x1.28d9ce20061c1p+2}, 30},
    {"gelu", {-0x1.78ca73b868f2fp+1}, 29},
    {"gelu", {-0x1.cbba85c50a62cp+2}, 29},
    {"gelu_tanh", {-0x1.6bc26e49b174ap+2}, 31},
    {"gelu_tanh", {0x1.3f3f62edb3657p+0}, 31},
    {"gelu_tanh", {0x1.d34454cfc0c63p-4}, 30},
    {"gelu_tanh", {-0x1.7da30c35a3677p+2}, 29},
    {"mish", {-0x1.b801fef98c2b7p+1}, 34},
    {"mish", {-0x1.f8602e23438fp+2}, 31},
    {"mish", {-0x1.5dfd330ed0227p+3}, 30},
    {"mish", {0x1.784d9b8586c47p+2}, 30},
    {"selu", {-0x1.18be8ffc2f975p+2}, 32},
    {"selu", {-0x1.a6ba6b517a977p+0}, 32},
    {"selu", {-0x1.67f1ead8ad59ap-1}, 30},
    {"selu", {-0x1.1cd773fbb70bdp+2}, 30},
    {"tanhshrink", {-0x1.9de8b0a87149cp+1}, 31},
    {"tanhshrink", {-0x1.0734bb4036d78p+3}, 31},
    {"tanhshrink", {-0x1.c858b998c81dap+2}, 30},
    {"tanhshrink", {-0x1.be5bd1bf569c3p+0}, 29},
    {"sin_backward", {0x1.693e597bc5899p+1, 0x1.734839827f1c8p+4}, 66},
    {"sin_backward", {0x1.e4c4dff4e6c71p+1, 0x1.3981e03751f2p+2}, 65},
    {"sin_backward", {0x1.165c83ff200cfp+1, -0x1.a937da2dc815cp+2}, 65},
    {"cos_backward", {0x1.2f5c74a204466p-1, -0x1.8541b8896056ap+3}, 65},
    {"cos_backward", {0x1.61b013c68a704p-1, -0x1.a4944983a6b38p+2}, 65},
    {"cos_backward", {0x1.9272f76e4ae16p+0, 0x1.a6bc9ba735554p+3}, 65},
    {"erf_backward", {0x1.e766954b64099p+0, -0x1.ea30596309728p+1}, 70},
    {"erf_backward", {0x1.466ac14ee1145p-1, 0x1.364406835ffeap+1}, 65},
    {"erf_backward", {0x1.27418f01fd5ddp+1, -0x1.6dab3143f0b1p-2}, 65},
    {"erfc_backward", {0x1.b0a78aab7c1eap+0, 0x1.dcea2b375a7p+0}, 65},
    {"erfc_backward", {0x1.80fed0603acc6p+0, 0x1.1ca5cc47ea788p+1}, 64},
    {"erfc_backward", {0x1.4f5046b8866cp+0, 0x1.fb20233343e84p+0}, 64},
    {"erfinv_backward", {0x1.8a5516143a2f9p+0, -0x1.78c5effb51a7p-1}, 65},
    {"erfinv_backward", {0x1.80ea166bf7365p+0, 0x1.2e8117c7db64p-1}, 64},
    {"erfinv_backward", {0x1.2e81821db319p+0, -0x1.14a932a4346bcp+2}, 64},
    {"ndtri_backward", {0x1.995743fa866bcp+0, 0x1.7308dd410e51cp+2}, 64},
    {"ndtri_backward", {0x1.6add9c33e88ccp+0, -0x1.6189d7b2a34b6p+1}, 64},
    {"ndtri_backward", {0x1.49da0d72e7feap+0, -0x1.4575f50a32036p+1}, 64},
    {"silu_backward", {0x1.ee9d67c543665p+1, 0x1.726e770408fcp+0}, 68},
    {"silu_backward", {0x1.178bbb6c0859cp+1, 0x1.9aecfcea1fd34p+2}, 66},
    {"silu_backward", {0x1.de1c02de69167p+1, -0x1.df7809ec39351p+2}, 65},
    {"mish_backward", {0x1.46860d9af8387p+0, 0x1.2d4c7824db14p+2}, 68},
    {"mish_backward", {0x1.3da4b49540cf9p+0, 0x1.caff085b2c4fp-1}, 65},
    {"mish_backward", {0x1.88d707a0b4204p+1, 0x1.b9558e30d5b8p-1}, 64},
    {"gelu_backward", {0x1.8dcdec0524f8fp+0, -0x1.26fa732d0c235p+1}, 66},
    {"gelu_backward", {0x1.491cca9845p+1, -0x1.9cb7535afee5p-1}, 65},
    {"gelu_backward", {0x1.4ab53f7f8345dp+1, 0x1.f991472af517p-1}, 64},
    {"gelu_tanh_backward", {0x1.ceb78a81ff25cp+0, -0x1.e42217d8a98ep-2}, 66},
    {"gelu_tanh_backward", {0x1.b711e79bf0b81p+1, 0x1.2d801500156ep-1}, 66},
    {"gelu_tanh_backward", {0x1.0e4592c5b2b71p-1, 0x1.4475b37f68d8cp+0}, 66},
    {"log_sigmoid_backward", {0x1.b2fc779ed9529p+1, 0x1.88e71cbf3dfbcp+2}, 66},
    {"log_sigmoid_backward", {0x1.55dc9d6000facp+0, 0x1.37097006dd92cp+3}, 65},
    {"log_sigmoid_backward", {0x1.c7e76465c13e1p+0, 0x1.5a8be78ae1b88p+1}, 63},
    {"softplus_backward", {0x1.31d085eef27b8p-1, -0x1.1203c5253fe6ep+2}, 66},
    {"softplus_backward", {0x1.755b2ff07453fp+1, 0x1.05dfa98780684p+1}, 65},
    {"softplus_backward", {0x1.e509ce3195b4cp+1, -0x1.c1202149938p-7}, 65},
    {"elu_backward", {0x1.bc492e306225bp+1, -0x1.877c4bd8c157cp+2}, 63},
    {"elu_backward", {0x1.668e5daf00968p+0, -0x1.57b9eac5f9048p+1}, 63},
    {"elu_backward", {0x1.8c3b77132c9c5p+1, -0x1.abae21744828cp+2}, 63},
    {"celu_backward", {0x1.ef90438d910cp+1, -0x1.8b447f12f9da6p+2}, 65},
    {"celu_backward", {0x1.b001705b3b9f3p+1, -0x1.10e6b7ead0b5ap+3}, 64},
    {"celu_backward", {0x1.2ceac323f9484p+0, -0x1.71de2c09ab47fp+2}, 64},
    {"selu_backward", {0x1.15d34e6e8907cp-1, -0x1.9a0f4213ec19ap+2}, 65},
    {"selu_backward", {0x1.7e6a9bf8b79e8p-1, -0x1.c2646e2e4d4cap+1}, 65},
    {"selu_backward", {0x1.b0baf8e50d4adp-1, -0x1.815ca4d0565cp+0}, 64},
    {"log2_backward", {0x1.487a2f91e2c35p+0, -0x1.e346fc8346216p+1}, 65},
    {"log2_backward", {0x1.a72396a2f994dp+0, 0x1.ab9d8e5665018p+2}, 64},
    {"log2_backward", {0x1.63910960ba8adp+0, 0x1.bacffab0de688p+1}, 64},
    {"log10_backward", {0x1.15d3efa3d1ee3p-1, -0x1.81681eded30c6p+2}, 65},
    {"log10_backward", {0x1.fcc28ca95a717p+0, -0x1.e9caf536f479cp+2}, 65},
    {"log10_backward", {0x1.5851b040070e8p+0, -0x1.ce6533e1cc888p+2}, 64},
    {"exp2_backward", {0x1.39e5e6806e6ecp-1, 0x1.941af7843f22fp+2}, 64},
    {"exp2_backward", {0x1.103414ebde8fdp+0, 0x1.2d24a268de8d4p-1}, 64},
    {"exp2_backward", {0x1.84b37ef1bb6cdp-1, 0x1.67d179f7263cbp+0}, 64},
    {"xlogy", {0x1.89668bb7a4f29p-1, 0x1.143dd54beae4ap+1}, 69},
    {"xlogy", {0x1.ac8d2d45b261bp+1, 0x1.0178c0c6d1f9ep+2}, 66},
    {"xlogy", {0x1.f50bb3a067e2ep+0, 0x1.e4febfb84d0eep+2}, 66},
    {"xlogy_backward_x", {0x1.19666bd649017p+1, 0x1.dd30e469e3072p+2, 0x1.a08aff8370b83p+2}, 64},
    {"xlogy_backward_x", {0x1.e22b23d15948dp+1, 0x1.3b32701f96e8p-7, 0x1.ad9aded3468c4p+0}, 64},
    {"xlogy_backward_x", {0x1.88b438d6b4c2ap+0, 0x1.211aea3c2e794p+2, 0x1.9ee9db7e9d3e2p+1}, 64},
    {"logaddexp_backward", {0x1.bf8a742a98ff7p+1, 0x1.696708669dfb8p+1, -0x1.0fb5cc76de748p+1}, 68},
    {"logaddexp_backward", {0x1.097b80a379edp+1, -0x1.015800b1849d6p+1, 0x1.e21b0bc24a31cp+1}, 65},
    {"logaddexp_backward", {0x1.b13a2f33cdf88p+0, 0x1.d505c804472e4p+1, -0x1.1313ee6abdac8p+1}, 65},
    {"logaddexp2_backward", {0x1.ae5d463b99656p+0, -0x1.c811132619a98p-1, 0x1.2607131adfa8cp+1}, 67},
    {"logaddexp2_backward", {0x1.bfc0cb7cadbb8p+1, 0x1.1431c374b85b4p+0, -0x1.eba67238eebap-1}, 65},
    {"logaddexp2_backward", {0x1.3a41ef25466b4p+1, -0x1.c4ac645eb5858p+1, -0x1.6ed5ac039c5ap+0}, 63},
    {"pow_backward_x", {0x1.f3a53358d5c6fp-1, 0x1.1993f3632ad5fp+0, 0x1.75f1ab6bbc496p+1}, 67},
    {"pow_backward_x", {0x1.4e01e445d46a8p+1, 0x1.d77b69d5be532p+1, 0x1.7df321d0681a8p+0}, 67},
    {"pow_backward_x", {0x1.78c86b6dc2044p+1, 0x1.fce1210a00987p+0, 0x1.93ba905b0162p+0}, 67},
    {"pow_backward_y", {0x1.5898148ab5415p-1, 0x1.8a066fbc68f7p+1, 0x1.ba4f48f4974bp+0}, 68},
    {"pow_backward_y", {0x1.bee58221c1b6ap-1, 0x1.51cb8da96000cp+0, 0x1.2a82f3b409a7dp+1}, 66},
    {"pow_backward_y", {0x1.d9254014df094p+0, 0x1.0e737df29cc55p-1, 0x1.648870a2a8014p+1}, 65},
    {"scalar_pow_backward", {0x1.a55873b89f39p+0, -0x1.ac83ee3fda408p+1}, 72},
    {"scalar_pow_backward", {0x1.4e6f9f8831e87p-1, 0x1.b4e2aa7139538p+2}, 65},
    {"scalar_pow_backward", {0x1.3ae636a382a2ap+1, 0x1.45290bb221404p+2}, 64},
    {"glu", {0x1.4291f0a68f62cp-1, -0x1.a372405bb3ddep+2}, 66},
    {"glu", {0x1.2bad08f515028p+0, 0x1.22a66f62d411ep+3}, 65},
    {"glu", {0x1.e5a0f9b6a173cp+1, 0x1.10cc167924e9p+3}, 64},
    {"swiglu", {-0x1.a376cb1f9d744p+2, 0x1.e50226d7184b8p-1}, 66},
    {"swiglu", {-0x1.e0be037095bd2p+1, 0x1.13726b3bb1ed5p+0}, 66},
    {"swiglu", {0x1.bb917aea4e0f8p+2, 0x1.6c44e196204e4p-2}, 65},
    {"geglu", {0x1.7028873f9b0bp-1, 0x1.15b6073579572p-1}, 65},
    {"geglu", {0x1.f1918f0803618p+0, 0x1.51dd84694c3d8p+0}, 64},
    {"geglu", {-0x1.fcc758b701148p+0, 0x1.b7d7ce5781e6ap-1}, 63},
    {"glu_backward_b", {0x1.8a370538fbe3ep+0, -0x1.05863c5f0852ap+2, -0x1.7e6d7161d6b04p+2}, 64},
    {"glu_backward_b", {0x1.381acd037fa5ep+0, 0x1.cddc485e41c3p+0, -0x1.9a7ac1be8e21cp+2}, 64},
    {"glu_backward_b", {0x1.48832f04d1e89p+0, -0x1.05863c5f0852ap+2, -0x1.7e6d7161d6b04p+2}, 64},
    {"swiglu_backward_a", {0x1.ea70281450f1fp-1, -0x1.5a7ef50fe0d8p+0, -0x1.33acb23887e34p+3}, 65},
    {"swiglu_backward_a", {0x1.0d46514509d1ap+0, 0x1.4417c0431a64cp+1, -0x1.eecaa3d4c9913p+2}, 65},
    {"swiglu_backward_a", {0x1.e1a18176331d5p+0, -0x1.8eaa2715a3f0cp+2, 0x1.d9e82b00b0db8p+1}, 64},
    {"geglu_backward_a", {0x1.d4351f71ccd7dp+0, -0x1.765bf63fd9358p+2, -0x1.343e7d126844cp+0}, 68},
    {"geglu_backward_a", {0x1.af59d3642be7fp+0, -0x1.2270019681e31p+2, -0x1.393393de6fe67p+2}, 65},
    {"geglu_backward_a", {0x1.cd2aad9c00274p-2, 0x1.63a69749e0a9p+0, -0x1.2358b8b4d7958p-1}, 65},
};

/// A row that with its other operand fixed is another one's function of x, or of -x, and so has its hard ones.
struct relation {
  std::string_view row, of;
  int place;         ///< of x
  double other = 0;  ///< the other operand, where there is one
  bool negated = false;
};
constexpr relation relations[] = {
    {"pow", "exp2", 1, 2},
    {"pow", "rsqrt", 0, -0.5},
    {"scalar_pow", "exp2", 0},
    {"xlogy", "log", 1, -1},
    {"elu", "expm1", 0},  // and celu: of x < 0
    {"celu", "expm1", 0},
    {"softplus", "log_sigmoid", 0, 0, true},
    {"logaddexp", "log_sigmoid", 1, 0, true},
};

/// Where results overflow, vanish or reach a limit that they round to, or where terms cancel.
struct border {
  std::string_view row;
  double x;
  int place = 0;  ///< the operand; the others are ordinary
};
constexpr border borders[] = {
    {"exp", 709.782712893384},
    {"exp", -745.1332191019412},
    {"exp", -708.3964185322641},
    {"exp", 0x1p-53},
    {"exp2", 1024},
    {"exp2", -1075},
    {"exp2", -1022},
    {"expm1", 709.782712893384},
    {"expm1", -37.42994775023705},
    {"expm1", -0x1p-53},
    {"log", 1},
    {"log2", 1},
    {"log10", 1},
    {"log10", 1e22},
    {"log10", 1e23},
    {"log1p", -1},
    {"log1p", 0x1p-53},
    {"sin", 3.141592653589793},
    {"sin", 6381956970095103 * 0x1p797},  // the least |x mod pi/2|
    {"cos", 1.5707963267948966},
    {"cos", 6381956970095103 * 0x1p797},
    {"cos", 0x1.6a09e667f3bcdp-27},
    {"tan", 1.5707963267948966},
    {"tan", 6381956970095103 * 0x1p797},
    {"tan", 0x1p-27},
    {"asin", 1},
    {"asin", -1},
    {"acos", 1},
    {"acos", -1},
    {"acos", 0x1p-55},
    {"atan", 0x1p54},
    {"sinh", 710.4758600739439},
    {"cosh", 710.4758600739439},
    {"cosh", 0x1p-26},  // 2^-108.6 beside a midpoint
    {"asinh", 0x1p60},
    {"acosh", 1},
    {"acosh", 0x1p60},
    {"atanh", 1},
    {"atanh", -1},
    {"cbrt", 8},
    {"exp10", 308.25471555991675},
    {"exp10", -323.30621534311581},
    {"exp10", 22},
    {"exp10", 23},  // a midpoint
    {"exp2m1", 53},
    {"exp2m1", 54},
    {"exp2m1", -54},
    {"exp2m1", 1024},
    {"exp10m1", 15},
    {"exp10m1", 16},
    {"exp10m1", 308.25471555991675},
    {"exp10m1", -16.255619765854984},
    {"log2p1", -1},
    {"log2p1", 0x1p53},
    {"log10p1", -1},
    {"log10p1", 999},
    {"sinpi", 0x1p52},
    {"sinpi", 0.5},
    {"cospi", 0x1p52},
    {"cospi", 0.5},
    {"tanpi", 0x1p52},
    {"tanpi", 0.25},
    {"tanpi", 0.5},
    {"sinc", 0x1p52},
    {"ndtr", 8.2095362},
    {"ndtr", -38.472346342},
    {"ndtr", -37.519379347},
    {"log_ndtr", 38.485408335567342},
    {"log_ndtr", 37.5193793471445},
    {"log_ndtr", 1.2374368670764582},
    {"log_ndtr", -54},
    {"log_ndtr", -1.8961503816218352e154},
    {"sinc", 1},
    {"tanh", 19.061547465398498},
    {"erf", 5.921587195794507},
    {"erfc", -5.8635847487551676},
    {"erfc", 26.54325845425098},
    {"erfc", 27.226017111108362},
    {"sigmoid", -745.1332191019412},
    {"sigmoid", 36.7368005696771},
    {"log_sigmoid", 745.1332191019412},
    {"log_sigmoid", -33.2},
    {"silu", -751.7556304135238},
    {"silu", 36.7368005696771},
    {"silu", -1.278464542761073795109},  // the least value; so of gelu and mish
    {"gelu", -38.58014022378236},
    {"gelu", 8.2},
    {"gelu", -0.751791524693564457458},
    {"gelu_tanh", -21.547075410436022},
    {"gelu_tanh", -0.752461422071016258488},
    {"mish", -751.7556304135238},
    {"mish", -1.192431214515495212138},
    {"selu", 1.710946460026603e308},
    {"selu", -37.4},
    {"softsign", 0x1p53},
    {"hardsigmoid", 3},
    {"hardswish", 3},
    {"tanhshrink", 0x1p53},
    {"tanhshrink", 0x1p54},
    {"elu", -37.4},
    {"celu", -37.4},
    {"softplus", 20},
    {"softplus", -745.1332191019412},
    {"logit", 0.5},
    {"logit", 1},
    {"xlogy", 1, 1},
    {"xlogy_backward_x", 1, 2},
    {"pow_scalar", 1.3407807929942596e154},
    {"scalar_pow", 1024},
    {"scalar_pow", -1075},
    {"scalar_pow_backward", 1024, 1},
    {"sin_backward", 1.5707963267948966, 1},
    {"sin_backward", 6381956970095103 * 0x1p797, 1},
    {"cos_backward", 3.141592653589793, 1},
    {"cos_backward", 6381956970095103 * 0x1p797, 1},
    {"erfinv_backward", 26.64175557, 1},  // e^(y^2), e^(y^2 / 2) about 2^1024
    {"ndtri_backward", -37.67713208, 1},
    // Where the gradient changes its sign.
    {"silu_backward", -1.278464542761073795109, 1},
    {"swiglu_backward_a", -1.278464542761073795109, 1},
    {"gelu_backward", -0.751791524693564457458, 1},
    {"geglu_backward_a", -0.751791524693564457458, 1},
    {"gelu_tanh_backward", -0.752461422071016258488, 1},
    {"mish_backward", -1.192431214515495212138, 1},
};

/// Results are subnormal between these.
struct region {
  std::string_view row;
  double from, to;
  int place = 0;
};
constexpr region vanishing[] = {
    {"exp", -708.3, -745.2},
    {"exp2", -1021.9, -1075.1},
    {"exp10", -307.6, -323.7},
    {"sigmoid", -708.3, -745.2},
    {"log_sigmoid", 708.3, 745.2},
    {"silu", -714.9, -751.8},
    {"gelu", -37.6, -38.6},
    {"gelu_tanh", -21.1, -21.6},
    {"mish", -714.9, -751.8},
    {"erfc", 26.5, 27.3},
    {"tanhshrink", 0x1p-359, 0x1p-340},
    {"softplus", -708.3, -745.2},
    {"pow_scalar", 0x1p-538, 0x1p-511},
    {"scalar_pow", -1021.9, -1075.1},
    {"scalar_pow_backward", -1020, -1076, 1},
    {"erf_backward", 26.5, 27.4, 1},
    {"erfc_backward", 26.5, 27.4, 1},
    {"silu_backward", -713, -753, 1},
    {"log_sigmoid_backward", 707, 747, 1},
    {"gelu_backward", -37.5, -38.7, 1},
    {"gelu_tanh_backward", -21.1, -21.7, 1},
    {"mish_backward", -713, -753, 1},
    {"elu_backward", -707, -747, 1},
    {"selu_backward", -707, -747, 1},
    {"celu_backward", -707, -747, 1},
    {"softplus_backward", -707, -747, 1},
    {"glu", -707, -747, 1},
    {"swiglu", -713, -753},
    {"geglu", -37.5, -38.7},
    {"glu_backward_b", 707, 747, 2},
    {"swiglu_backward_a", -713, -753, 1},
    {"geglu_backward_a", -37.5, -38.7, 1},
};

/// One of the entries of a table for a row; null where there is none.
template <class T, std::size_t N>
const T* one_of(const T (&table)[N], std::string_view row, word_stream& w) {
  const auto is = [&](const T& e) { return e.row == row; };
  const auto count = static_cast<std::uint32_t>(std::count_if(std::begin(table), std::end(table), is));
  if (count == 0) return nullptr;
  std::uint32_t skip = w.below(count);
  return std::find_if(std::begin(table), std::end(table), [&](const T& e) { return is(e) && skip-- == 0; });
}

/// Moved by less than 2^bits numbers, on either side.
std::uint64_t moved(std::uint64_t x, int bits, word_stream& w) {
  const std::uint64_t by = bits == 0 ? 0 : w.next64() >> (64 - bits);
  return w.flip() ? x + by : x - by;
}

/// log2 of m / 2^63, m >= 2^63, in units of 2^-63, rounded down: by squaring.
std::uint64_t fraction_of_logarithm(std::uint64_t m) {
  std::uint64_t log = 0;
  for (int bit = 62; bit >= 0; --bit) {
    const wide square = wide{m} * m;
    const bool high = square >> 127 != 0;
    if (high) log |= std::uint64_t{1} << bit;
    m = static_cast<std::uint64_t>(square >> (high ? 64 : 63));
  }
  return log;
}

/// y such that x^y is about 2^target; x > 0. As exact as the logarithm is, which has few bits next to 1.
std::uint64_t power_that_gives(const number& x, int target) {
  const int zeros = std::countl_zero(x.significand);
  const int exponent = x.exponent + 63 - zeros;  // 2^exponent <= x
  const std::uint64_t fraction = fraction_of_logarithm(x.significand << zeros);
  const bool below_one = exponent < 0, negative = below_one != (target < 0);
  const wide whole = wide{static_cast<unsigned>(std::abs(exponent))} << 63;
  const wide log = below_one ? whole - fraction : whole + fraction;  // |log2 x|, in units of 2^-63, below 2^74
  if (log == 0) return round(f64, false, 1, 0, false);
  const wide y = (wide{static_cast<unsigned>(std::abs(target))} << 116) / log;  // in units of 2^-53
  const auto high = static_cast<std::uint64_t>(y >> 64);
  const int cut = high == 0 ? 0 : 64 - std::countl_zero(high);
  return round(f64, negative, static_cast<std::uint64_t>(y >> cut), cut - 53, false);
}

/// x^y of 54 bits and any exponent, or with the last bit 2^-1075: (m 2^e)^n, or (m^k 2^(k e))^(n / k), k a power of two.
void midpoint_power(word_stream& w, std::uint64_t* in) {
  const bool small = w.below(4) == 0;
  constexpr int divisors[] = {5, 25, 43};  // of 1075
  const int n = small ? divisors[w.below(3)] : w.between(2, 34);
  std::uint64_t m = 1;
  if (small && n < 43) m = odd_of(w.between(2, 50 / n), w);
  for (int i = 0; !small && i < 64; ++i) {
    m = odd_of(w.between(53 / n + 1, 54 / n + 1), w);
    wide power = 1;
    for (int k = 0; k < n && power >> 64 == 0; ++k) power *= m;
    if (power >> 53 == 1) break;
  }
  int e = small ? -1075 / n : w.between(-900 / n, 900 / n);
  int roots = 0;
  while (!small && w.flip() && m < (std::uint64_t{1} << 26)) {
    m *= m;
    e *= 2;
    ++roots;
  }
  const bool negative = roots == 0 && w.flip();
  in[0] = round(f64, negative, m, e, false);
  in[1] = round(f64, false, static_cast<std::uint64_t>(n), -roots, false);
}

/// Next to a midpoint, where such operands of the row are known.
bool hard_operands_of(const ops::elementwise_row& row, word_stream& w, std::uint64_t* in) {
  const hard_operands* h = one_of(published, row.name, w);
  if (h == nullptr) h = one_of(found, row.name, w);
  const relation* const r = one_of(relations, row.name, w);
  double x[3] = {};
  if (h != nullptr && (r == nullptr || w.flip())) {
    std::copy_n(h->x, 3, x);
  } else if (r != nullptr) {
    h = one_of(published, r->of, w);
    if (h == nullptr) h = one_of(found, r->of, w);
    if (h == nullptr) return false;
    std::fill_n(x, 3, r->other);
    x[r->place] = r->negated ? -h->x[0] : h->x[0];
  } else {
    return false;
  }
  for (int k = 0; k < row.arity; ++k) in[k] = std::bit_cast<std::uint64_t>(x[k]);
  if (w.below(4) == 0) in[0] = moved(in[0], 2, w);
  return true;
}

/// x with x^2 within 2^-33 ulp of a midpoint, or nearer: x^2 = 2^52 + d (mod 2^53), of 106 bits.
std::uint64_t near_square(word_stream& w) {
  constexpr std::uint64_t unit = std::uint64_t{1} << 52;
  std::uint64_t x = unit;
  for (int i = 0; i < 64 && wide{x} * x >> 105 == 0; ++i) {
    const std::uint64_t d = 8 * (w.next64() >> (47 + w.below(16))) + 1;  // 1 (mod 8): a square
    const std::uint64_t square = w.flip() ? unit + d : unit + 2 - d;
    std::uint64_t root = 1;  // of 1 / square: Newton's steps double the right bits, less one
    for (int k = 0; k < 6; ++k) root = root * (3 - square * root * root) / 2;
    x = unit | ((square * root) & (unit - 1));
  }
  return round(f64, false, x, w.between(-500, 400), false);
}

bool difficult_power(const ops::elementwise_row& row, sample_class c, word_stream& w, std::uint64_t* in) {
  switch (c) {
    case sample_class::ties:
      midpoint_power(w, in);
      return true;
    case sample_class::near_ties:
      if (w.below(4) == 0) return hard_operands_of(row, w, in);
      if (w.flip()) {
        in[0] = near_square(w);
        in[1] = round(f64, false, 2, 0, false);
      } else {  // not near, but tests that a tie is no tie
        midpoint_power(w, in);
        const std::uint32_t k = w.below(2);
        in[k] = moved(in[k], 1 + static_cast<int>(w.below(3)), w);
      }
      return true;
    case sample_class::overflow_border:
    case sample_class::subnormal: {
      const bool negative = w.below(4) == 0;
      in[0] = w.flip() ? sample(sample_class::wide_exponents, f64, w) : sample(sample_class::normal_range, f64, w);
      in[0] &= ~format_of(f64).sign_bit();
      if (w.below(4) == 0)
        in[0] = moved(round(f64, false, 1, 0, false), 1 + static_cast<int>(w.below(40)), w);  // next to 1
      const number x = widen(f64, in[0]);
      if (x.kind != number_kind::finite) return false;
      const int target = c == sample_class::subnormal ? w.between(-1076, -1021) : 1024;
      in[1] = moved(power_that_gives(x, target), w.between(0, 42), w);
      if (negative) in[0] |= format_of(f64).sign_bit();
      return true;
    }
    default:
      return false;
  }
}

/// x^2 + y^2 = (N + 1/2)^2 with x = N = (j^2 - 1) / 4 and y = j / 2, times a power of two; N + 1/2 has 54 bits.
void midpoint_hypot(word_stream& w, std::uint64_t* in) {
  std::uint64_t j = 0;
  do j = odd_of(28, w);
  while (j * j >> 55 != 0);
  const int e = w.between(-1000, 900);
  const std::uint32_t first = w.below(2);
  const bool s = w.flip(), t = w.flip();
  in[first] = round(f64, s, (j * j - 1) / 4, e, false);
  in[1 - first] = round(f64, t, j, e - 1, false);
}

}  // namespace

std::span<const hard_operands> published_hard_operands() { return published; }
std::span<const hard_operands> found_hard_operands() { return found; }

bool detail::difficult_operands(const ops::elementwise_row& row, sample_class c, word_stream& w, std::uint64_t* in) {
  const auto bits = [](double v) { return std::bit_cast<std::uint64_t>(v); };
  if (row.name == "pow") return difficult_power(row, c, w, in);
  switch (c) {
    case sample_class::ties:
      if (row.name != "hypot") return false;
      midpoint_hypot(w, in);
      return true;
    case sample_class::near_ties:
      if (row.name == "pow_scalar" && w.flip()) {  // whose power is 2, if no other one is given
        in[0] = near_square(w);
        return true;
      }
      return w.flip() && hard_operands_of(row, w, in);
    case sample_class::overflow_border: {
      const border* b = one_of(borders, row.name, w);
      if (b == nullptr || w.below(4) == 0) return false;
      for (int k = 0; k < row.arity; ++k) in[k] = sample(sample_class::normal_range, f64, w);
      in[b->place] = moved(bits(b->x), w.between(0, 48), w);
      return true;
    }
    case sample_class::subnormal: {
      const region* r = one_of(vanishing, row.name, w);
      if (r == nullptr || w.flip()) return false;
      const std::uint64_t low = std::min(bits(r->from), bits(r->to)), high = std::max(bits(r->from), bits(r->to));
      for (int k = 0; k < row.arity; ++k) in[k] = sample(sample_class::normal_range, f64, w);
      in[r->place] = low + w.next64() % (high - low);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace repdl::reference
