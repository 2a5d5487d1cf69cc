// Table of circular.hpp. Made by reference/gen/circular.sollya; do not edit.
#pragma once

#include "librepdl/num/platform.hpp"

namespace repdl::num {
inline namespace REPDL_ISA {

// 2^(e - 23) / pi less an even integer, between -1 and 1, = a[e] + b[e] + c[e] with an error below 2^-111; a is a multiple of
// 2^-28, b of 2^-57.
struct circular_columns {
  double a[128], b[128], c[128];
};

// clang-format off
inline constexpr circular_columns circular_on_host = {
    {0x1.4p-25, 0x1.4p-24, 0x1.48p-23, 0x1.44p-22,
     0x1.46p-21, 0x1.46p-20, 0x1.46p-19, 0x1.46p-18,
     0x1.46p-17, 0x1.45fp-16, 0x1.45fp-15, 0x1.45f4p-14,
     0x1.45f4p-13, 0x1.45f3p-12, 0x1.45f3p-11, 0x1.45f3p-10,
     0x1.45f3p-9, 0x1.45f3p-8, 0x1.45f308p-7, 0x1.45f308p-6,
     0x1.45f306p-5, 0x1.45f307p-4, 0x1.45f307p-3, 0x1.45f306cp-2,
     0x1.45f306ep-1, -0x1.7419f24p-1, 0x1.17cc1b8p-1, -0x1.d067c92p-1,
     0x1.7cc1b7p-3, 0x1.7cc1b74p-2, 0x1.7cc1b72p-1, -0x1.067c91cp-1,
     0x1.f306dcap-1, -0x1.9f246cp-5, -0x1.9f246cp-4, -0x1.9f246c8p-3,
     -0x1.9f246c8p-2, -0x1.9f246c6p-1, 0x1.836e4e4p-2, 0x1.836e4e4p-1,
     -0x1.f246c7p-2, -0x1.f246c6ep-1, 0x1.b72722p-5, 0x1.b72722p-4,
     0x1.b72722p-3, 0x1.b72722p-2, 0x1.b72722p-1, -0x1.236377cp-2,
     -0x1.236377ep-1, 0x1.b939106p-1, -0x1.1b1bbecp-2, -0x1.1b1bbeap-1,
     0x1.c9c882ap-1, -0x1.b1bbebp-3, -0x1.b1bbeacp-2, -0x1.b1bbeaep-1,
     0x1.391054cp-2, 0x1.391054ap-1, -0x1.8ddf56cp-1, 0x1.c882a54p-2,
     0x1.c882a54p-1, -0x1.bbead6p-3, -0x1.bbead6p-2, -0x1.bbead6p-1,
     0x1.1054a8p-2, 0x1.1054a8p-1, -0x1.df56b02p-1, 0x1.054a7fp-3,
     0x1.054a7fp-2, 0x1.054a7fp-1, -0x1.f56b01ep-1, 0x1.529fc2p-5,
     0x1.529fc2p-4, 0x1.529fc28p-3, 0x1.529fc28p-2, 0x1.529fc28p-1,
     -0x1.5ac07b2p-1, 0x1.4a7f09ep-1, -0x1.6b01ec6p-1, 0x1.29fc276p-1,
     -0x1.ac07b16p-1, 0x1.4fe13acp-2, 0x1.4fe13acp-1, -0x1.603d8a8p-1,
     0x1.3f84ebp-1, -0x1.80f62ap-1, 0x1.fc2757cp-2, 0x1.fc2757ep-1,
     -0x1.ec5418p-7, -0x1.ec5418p-6, -0x1.ec5418p-5, -0x1.ec5417p-4,
     -0x1.ec5417p-3, -0x1.ec5417p-2, -0x1.ec5417p-1, 0x1.3abe9p-4,
     0x1.3abe8f8p-3, 0x1.3abe8fcp-2, 0x1.3abe8fap-1, -0x1.8a82e0ap-1,
     0x1.d5f47d4p-2, 0x1.d5f47d4p-1, -0x1.505c158p-3, -0x1.505c158p-2,
     -0x1.505c15ap-1, 0x1.5f47d4ep-1, -0x1.4170566p-1, 0x1.7d1f534p-1,
     -0x1.05c1596p-1, 0x1.f47d4d4p-1, -0x1.70565ap-5, -0x1.705659p-4,
     -0x1.705659p-3, -0x1.705659p-2, -0x1.7056592p-1, 0x1.1f534dep-1,
     -0x1.c159644p-1, 0x1.f534dep-3, 0x1.f534ddcp-2, 0x1.f534ddcp-1,
     -0x1.596448p-5, -0x1.596448p-4, -0x1.596448p-3, -0x1.596448p-2,
     -0x1.596447ep-1, 0x1.4d37704p-1, -0x1.65911fap-1, 0x1.34ddc0ep-1},
    {0x1.7cc1b74p-31, 0x1.7cc1b72p-30, -0x1.067c91cp-30, 0x1.f306dcap-30,
     -0x1.9f246cp-34, -0x1.9f246cp-33, -0x1.9f246c8p-32, -0x1.9f246c8p-31,
     -0x1.9f246c6p-30, 0x1.836e4e4p-31, 0x1.836e4e4p-30, -0x1.f246c7p-31,
     -0x1.f246c6ep-30, 0x1.b72722p-34, 0x1.b72722p-33, 0x1.b72722p-32,
     0x1.b72722p-31, 0x1.b72722p-30, -0x1.236377cp-31, -0x1.236377ep-30,
     0x1.b939106p-30, -0x1.1b1bbecp-31, -0x1.1b1bbeap-30, 0x1.c9c882ap-30,
     -0x1.b1bbebp-32, -0x1.b1bbeacp-31, -0x1.b1bbeaep-30, 0x1.391054cp-31,
     0x1.391054ap-30, -0x1.8ddf56cp-30, 0x1.c882a54p-31, 0x1.c882a54p-30,
     -0x1.bbead6p-32, -0x1.bbead6p-31, -0x1.bbead6p-30, 0x1.1054a8p-31,
     0x1.1054a8p-30, -0x1.df56b02p-30, 0x1.054a7fp-32, 0x1.054a7fp-31,
     0x1.054a7fp-30, -0x1.f56b01ep-30, 0x1.529fc2p-34, 0x1.529fc2p-33,
     0x1.529fc28p-32, 0x1.529fc28p-31, 0x1.529fc28p-30, -0x1.5ac07b2p-30,
     0x1.4a7f09ep-30, -0x1.6b01ec6p-30, 0x1.29fc276p-30, -0x1.ac07b16p-30,
     0x1.4fe13acp-31, 0x1.4fe13acp-30, -0x1.603d8a8p-30, 0x1.3f84ebp-30,
     -0x1.80f62ap-30, 0x1.fc2757cp-31, 0x1.fc2757ep-30, -0x1.ec5418p-36,
     -0x1.ec5418p-35, -0x1.ec5418p-34, -0x1.ec5417p-33, -0x1.ec5417p-32,
     -0x1.ec5417p-31, -0x1.ec5417p-30, 0x1.3abe9p-33, 0x1.3abe8f8p-32,
     0x1.3abe8fcp-31, 0x1.3abe8fap-30, -0x1.8a82e0ap-30, 0x1.d5f47d4p-31,
     0x1.d5f47d4p-30, -0x1.505c158p-32, -0x1.505c158p-31, -0x1.505c15ap-30,
     0x1.5f47d4ep-30, -0x1.4170566p-30, 0x1.7d1f534p-30, -0x1.05c1596p-30,
     0x1.f47d4d4p-30, -0x1.70565ap-34, -0x1.705659p-33, -0x1.705659p-32,
     -0x1.705659p-31, -0x1.7056592p-30, 0x1.1f534dep-30, -0x1.c159644p-30,
     0x1.f534dep-32, 0x1.f534ddcp-31, 0x1.f534ddcp-30, -0x1.596448p-34,
     -0x1.596448p-33, -0x1.596448p-32, -0x1.596448p-31, -0x1.596447ep-30,
     0x1.4d37704p-30, -0x1.65911fap-30, 0x1.34ddc0ep-30, -0x1.96447e4p-30,
     0x1.a6ee06cp-31, 0x1.a6ee06ep-30, -0x1.6447e48p-31, -0x1.6447e4ap-30,
     0x1.377036ep-30, -0x1.911f924p-30, 0x1.bb81b6cp-31, 0x1.bb81b6cp-30,
     -0x1.11f925p-31, -0x1.11f924ep-30, 0x1.dc0db62p-30, -0x1.1f924e8p-32,
     -0x1.1f924ecp-31, -0x1.1f924ecp-30, 0x1.c0db62ap-30, -0x1.f924eb8p-32,
     -0x1.f924eb4p-31, -0x1.f924eb6p-30, 0x1.b6c52cp-35, 0x1.b6c52cp-34,
     0x1.b6c52bp-33, 0x1.b6c52bp-32, 0x1.b6c52b4p-31, 0x1.b6c52b4p-30,
     -0x1.24eb534p-31, -0x1.24eb534p-30, 0x1.b62959ap-30, -0x1.275a99cp-31},
    {-0x1.8ddf56b01ec54p-59, 0x1.c882a53f84ebp-60, 0x1.c882a53f84ebp-59, -0x1.bbead603d8a83p-61,
     -0x1.bbead603d8a83p-60, -0x1.bbead603d8a83p-59, 0x1.1054a7f09d5f4p-60, 0x1.1054a7f09d5f4p-59,
     -0x1.df56b01ec5417p-59, 0x1.054a7f09d5f48p-61, 0x1.054a7f09d5f48p-60, 0x1.054a7f09d5f48p-59,
     -0x1.f56b01ec5417p-59, 0x1.529fc2757d1f5p-63, 0x1.529fc2757d1f5p-62, 0x1.529fc2757d1f5p-61,
     0x1.529fc2757d1f5p-60, 0x1.529fc2757d1f5p-59, -0x1.5ac07b1505c16p-59, 0x1.4a7f09d5f47d5p-59,
     -0x1.6b01ec5417056p-59, 0x1.29fc2757d1f53p-59, -0x1.ac07b1505c159p-59, 0x1.4fe13abe8fa9ap-60,
     0x1.4fe13abe8fa9ap-59, -0x1.603d8a82e0acbp-59, 0x1.3f84eafa3ea6ap-59, -0x1.80f62a0b82b2dp-59,
     0x1.fc2757d1f534ep-60, 0x1.fc2757d1f534ep-59, -0x1.ec54170565912p-65, -0x1.ec54170565912p-64,
     -0x1.ec54170565912p-63, -0x1.ec54170565912p-62, -0x1.ec54170565912p-61, -0x1.ec54170565912p-60,
     -0x1.ec54170565912p-59, 0x1.3abe8fa9a6eep-62, 0x1.3abe8fa9a6eep-61, 0x1.3abe8fa9a6eep-60,
     0x1.3abe8fa9a6eep-59, -0x1.8a82e0acb223fp-59, 0x1.d5f47d4d37703p-60, 0x1.d5f47d4d37703p-59,
     -0x1.505c1596447e5p-61, -0x1.505c1596447e5p-60, -0x1.505c1596447e5p-59, 0x1.5f47d4d377037p-59,
     -0x1.4170565911f92p-59, 0x1.7d1f534ddc0dbp-59, -0x1.05c1596447e49p-59, 0x1.f47d4d377036ep-59,
     -0x1.70565911f924fp-63, -0x1.70565911f924fp-62, -0x1.70565911f924fp-61, -0x1.70565911f924fp-60,
     -0x1.70565911f924fp-59, 0x1.1f534ddc0db63p-59, -0x1.c1596447e493bp-59, 0x1.f534ddc0db629p-61,
     0x1.f534ddc0db629p-60, 0x1.f534ddc0db629p-59, -0x1.596447e493ad5p-63, -0x1.596447e493ad5p-62,
     -0x1.596447e493ad5p-61, -0x1.596447e493ad5p-60, -0x1.596447e493ad5p-59, 0x1.4d377036d8a56p-59,
     -0x1.65911f924eb53p-59, 0x1.34ddc0db6295ap-59, -0x1.96447e493ad4dp-59, 0x1.a6ee06db14acdp-60,
     0x1.a6ee06db14acdp-59, -0x1.6447e493ad4cep-60, -0x1.6447e493ad4cep-59, 0x1.377036d8a5665p-59,
     -0x1.911f924eb5336p-59, 0x1.bb81b6c52b328p-60, 0x1.bb81b6c52b328p-59, -0x1.11f924eb53362p-60,
     -0x1.11f924eb53362p-59, 0x1.dc0db6295993cp-59, -0x1.1f924eb53361ep-61, -0x1.1f924eb53361ep-60,
     -0x1.1f924eb53361ep-59, 0x1.c0db6295993c4p-59, -0x1.f924eb53361dep-61, -0x1.f924eb53361dep-60,
     -0x1.f924eb53361dep-59, 0x1.b6c52b3278872p-64, 0x1.b6c52b3278872p-63, 0x1.b6c52b3278872p-62,
     0x1.b6c52b3278872p-61, 0x1.b6c52b3278872p-60, 0x1.b6c52b3278872p-59, -0x1.24eb53361de38p-60,
     -0x1.24eb53361de38p-59, 0x1.b6295993c439p-59, -0x1.275a99b0ef1bfp-60, -0x1.275a99b0ef1bfp-59,
     0x1.b14acc9e21c82p-59, -0x1.3ad4cd8778df8p-60, -0x1.3ad4cd8778df8p-59, 0x1.8a5664f10e41p-59,
     -0x1.d6a66c3bc6fbep-60, -0x1.d6a66c3bc6fbep-59, 0x1.4acc9e21c821p-61, 0x1.4acc9e21c821p-60,
     0x1.4acc9e21c821p-59, -0x1.6a66c3bc6fbep-59, 0x1.2b3278872084p-59, -0x1.a99b0ef1bef8p-59,
     0x1.5993c439041fep-60, 0x1.5993c439041fep-59, -0x1.4cd8778df7c03p-59, 0x1.664f10e4107f9p-59,
     -0x1.3361de37df00dp-59, 0x1.993c439041fe5p-59, -0x1.9b0ef1bef806cp-60, -0x1.9b0ef1bef806cp-59,
     0x1.93c439041fe51p-60, 0x1.93c439041fe51p-59, -0x1.b0ef1bef806bap-60, -0x1.b0ef1bef806bap-59,
     0x1.3c439041fe516p-60, 0x1.3c439041fe516p-59, -0x1.8778df7c035d4p-59, 0x1.e21c820ff28b2p-60}
};
// clang-format on

REPDL_DEVICE_TABLE(circular_columns, circular)

}  // namespace REPDL_ISA
}  // namespace repdl::num
