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
