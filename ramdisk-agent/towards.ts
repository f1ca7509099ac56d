/** The network interface by which the machine reaches a server. */
import { createSocket } from 'node:dgram';
import { lookup as resolve } from 'node:dns/promises';
import { describeNic } from '../model/agent/subject';
import { readInterfaces } from './inventory/interfaces';
import type { Machine } from './machine';
import { plainMac } from './parameters';

/** The source address of the route to the host. Connecting a datagram socket sends nothing, but makes the kernel choose the address. */
export async function routeSource(host: string): Promise<string> {
  const { address, family } = await resolve(host);
  const socket = createSocket(family === 6 ? 'udp6' : 'udp4');
  try {
    await new Promise<void>((connected, failed) => {
      socket.once('error', failed);
      socket.connect(9, address, connected);
    });
    return socket.address().address;
  } finally {
    socket.close();
  }
}

/** Describes the interface of the route to the URL's host; without a route, the one that the machine booted from, else the first. */
export async function nicTowards({ tree, addresses, bootInterface }: Machine, url: string | undefined): Promise<string> {
  const nics = readInterfaces(tree, addresses());
  const host = url !== undefined && URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, '') : undefined;
  const source = host === undefined ? undefined : await routeSource(host).catch(() => undefined);
  const boot = bootInterface === null ? undefined : plainMac(bootInterface);
  const nic =
    nics.find(({ ipv4_address: v4, ipv6_address: v6 }) => source !== undefined && [v4, v6].includes(source)) ??
    nics.find(({ mac_address: mac }) => mac === boot) ??
    nics[0];
  return nic ? describeNic(nic) : 'no network interface';
}
