/** The ramdisk's DHCPv6 client as a program: `dhcpv6-client RESOLVER INTERFACE…`. */
import { randomBytes } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { systemClock } from '../../../model/clock';
import { consoleLog } from '../../../ramdisk-agent/log';
import { dhcpv6 } from '../../../ramdisk-agent/network/dhcpv6-command';
import { run } from '../../../ramdisk-agent/system/run';

const [resolver, ...names] = process.argv.slice(2) as [string, ...string[]];
const log = consoleLog((line) => process.stdout.write(line), systemClock, true);
void dhcpv6(names, { addresses: networkInterfaces, run, clock: systemClock, random: randomBytes, log, resolver });
