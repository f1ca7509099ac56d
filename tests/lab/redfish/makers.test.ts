/** The makers with the oddest Redfish services: the life of a node on machines that boot in QEMU. all-makers.test.ts has the others. */
import { LAB_SHORT } from '../../support/pages/maker-lives';
import { testMakers } from './maker-lives';

testMakers('bloomery-makers', LAB_SHORT);
