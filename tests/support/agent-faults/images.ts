/** An image server that misbehaves. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecure } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { ownCertificate, type OwnCertificate } from '../../../wire/http/certificate';
import { freePort } from '../free-port';
import type { ImageMode } from './machine';

const MiB = 2 ** 20;
/** A whole disk of 8 MiB: an MBR with one partition of 4 MiB. */
export function faultyImage(): Buffer {
  const image = randomBytes(8 * MiB);
  image.fill(0, 0, 512);
  image[446 + 4] = 0x83;
  image.writeUInt32LE(2048, 446 + 8);
  image.writeUInt32LE((4 * MiB) / 512, 446 + 12);
  image.writeUInt16LE(0xaa55, 510);
  return image;
}

export interface FaultyImages {
  /** Of this host. A request gets what `modeOf` says. */
  readonly port: number;
  /** PEM: the authority for the mode `dated`. */
  readonly authority: string;
  close(): Promise<void>;
}
/**
 * @param host as machines reach this host
 * @param at when the certificate of the mode `dated` begins, in milliseconds since the epoch
 * @param modeOf for the path of a GET
 */
export async function startFaultyImages(
  image: Buffer,
  host: string,
  at: number,
  modeOf: (path: string) => ImageMode,
): Promise<FaultyImages> {
  const servers: Server[] = [];
  const listen = async (server: Server): Promise<number> => {
    servers.push(server);
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    return (server.address() as AddressInfo).port;
  };
  const begun = (response: ServerResponse): ServerResponse => response.writeHead(200, { 'content-length': image.length });
  const whole = (response: ServerResponse): void => void begun(response).end(image);
  const half = image.subarray(0, image.length / 2);
  const secure = ({ certificate, privateKey }: OwnCertificate): Server =>
    createSecure({ cert: certificate, key: privateKey }, (_, response) => whole(response));
  const known = ownCertificate(host, 'images', at, randomBytes);
  const [foreign, dated, closed] = [
    await listen(secure(ownCertificate(host, 'other', Date.now(), randomBytes))),
    await listen(secure(known)),
    await freePort(),
  ];
  const redirect = (response: ServerResponse, location: string): void => void response.writeHead(302, { location }).end();
  const modes: Readonly<Record<ImageMode, (response: ServerResponse) => void>> = {
    whole,
    blank: (response) => void begun(response).end(Buffer.alloc(image.length)),
    endless: (response) => {
      const send = async (): Promise<void> => {
        response.writeHead(200);
        for (let sent = 0; sent < 64 && !response.destroyed; sent++) {
          if (!response.write(image)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
        }
        response.end();
      };
      void send();
    },
    missing: (response) => void response.writeHead(404).end(),
    broken: (response) => void response.writeHead(500).end(),
    cut: (response) => void begun(response).write(half, () => response.destroy()),
    stalls: (response) => void begun(response).write(half),
    slow: (response) => {
      begun(response);
      const part = image.length / 64;
      const send = async (): Promise<void> => {
        for (let sent = 0; sent < image.length && !response.destroyed; sent += part) {
          response.write(image.subarray(sent, sent + part));
          await delay(1000);
        }
        response.end();
      };
      void send();
    },
    elsewhere: (response) => redirect(response, 'http://images.invalid/image'),
    closed: (response) => redirect(response, `http://${host}:${closed}/image`),
    foreign: (response) => redirect(response, `https://${host}:${foreign}/image`),
    dated: (response) => redirect(response, `https://${host}:${dated}/image`),
  };
  const respond: RequestListener = ({ method, url = '' }, response) => {
    if (method === 'HEAD') begun(response).end();
    else modes[modeOf(url)](response);
  };
  const port = await listen(createServer(respond));
  return {
    port,
    authority: known.certificate,
    close: async () => {
      for (const server of servers) {
        server.closeAllConnections();
        await new Promise((closedServer) => server.close(closedServer));
      }
    },
  };
}
