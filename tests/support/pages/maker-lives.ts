/** The lives of a node on machines of makers: how they boot, and where they stop. The flow asserts it; docs/reference/hardware.md shows it. */
import type { PersonalityName } from '../../../simulator/redfish/makers/personalities';

/** Machines on which the hardware type redfish boots no virtual CD, as in Ironic; the hardware type idrac does. */
export const IDRAC: readonly PersonalityName[] = ['dell-idrac8', 'dell-idrac9-5', 'dell-idrac10'];

interface Stop {
  readonly step: string;
  readonly reason: RegExp;
  /** For the page. */
  readonly words: string;
}
/** The server of the flow has no certificate and no share. */
const refused = (words: string): Stop => ({ step: 'provide', reason: /takes virtual media by .+ only/, words });
const HTTPS = 'with `[boot]https_port` ([media-by-https.test.ts](../../tests/flows/hardware/media-by-https.test.ts)), refused without';
/** The life from a virtual CD on these machines. All others, and all lives from the network, reach their end. */
export const STOPS: Readonly<Partial<Record<PersonalityName, Stop>>> = {
  'fujitsu-irmc-s4': refused('from a share only; the error names the options'),
  'huawei-ibmc': refused(HTTPS),
  'xfusion-ibmc': refused(HTTPS),
  openbmc: refused(HTTPS),
};

/** The oddest makers, whose lives in the lab belong to each run of it. */
export const LAB_SHORT: readonly PersonalityName[] = ['supermicro-x11', 'lenovo-xcc', 'hpe-ilo5', 'gigabyte-ami'];
interface Boot {
  readonly driver: 'redfish' | 'idrac';
  readonly boot: 'ipxe' | 'redfish-virtual-media' | 'idrac-redfish-virtual-media';
  /** What the BMC tells the machine to boot the ramdisk from. */
  readonly device: 'cdrom' | 'pxe';
  readonly mode: 'bios' | 'uefi';
}
/** Machines whose boot mode the lab changes by Redfish; the others keep that with which they start. */
const UEFI: readonly PersonalityName[] = ['supermicro-x11', 'hpe-ilo6', 'asrock-ami', 'dell-idrac10'];
/** How the lab boots the ramdisk: by virtual media where the machine can take those of the server, otherwise from the network. */
export function bootOf(name: PersonalityName): Boot {
  const mode = UEFI.includes(name) ? 'uefi' : 'bios';
  if (name === 'fujitsu-irmc-s4') return { driver: 'redfish', boot: 'ipxe', device: 'pxe', mode };
  const isDell = name.startsWith('dell-');
  return {
    driver: isDell ? 'idrac' : 'redfish',
    boot: isDell ? 'idrac-redfish-virtual-media' : 'redfish-virtual-media',
    device: 'cdrom',
    mode,
  };
}
