/** The makers that makers.test.ts leaves out: the life of a node on machines that boot in QEMU. */
import { PERSONALITIES, type PersonalityName } from '../../../simulator/redfish/makers/personalities';
import { LAB_SHORT } from '../../support/pages/maker-lives';
import { testMakers } from './maker-lives';

const NAMES = Object.keys(PERSONALITIES) as readonly PersonalityName[];
testMakers(
  'bloomery-all-makers',
  NAMES.filter((name) => !LAB_SHORT.includes(name)),
);
