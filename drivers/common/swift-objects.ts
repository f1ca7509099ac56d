/** Objects of Swift that agents and BMCs read by a temporary URL. */
import { Fault, reasonOf } from '../../model/errors';
import type { Upload } from '../../wire/keystone/exchange';
import { objectTempUrl, putObject } from '../../wire/openstack/swift';
import type { Task } from '../interfaces';

interface TemporaryObject {
  readonly container: string;
  readonly name: string;
  readonly data: Uint8Array | (() => Promise<Upload>);
  readonly secondsToLive: number;
}
/** @returns a URL from which everybody can read the object while it lives. @throws Fault SwiftOperationError, MissingParameterValue */
export async function putTemporaryObject({ connections, clock, signal }: Task, object: TemporaryObject): Promise<string> {
  const { swift } = connections.services;
  const expires = Math.floor(clock.now() / 1000) + object.secondsToLive;
  try {
    await putObject(swift, object, { signal });
    const url = await objectTempUrl(swift, { ...object, expires }, { signal });
    if (url !== undefined) return url;
  } catch (error) {
    signal.throwIfAborted();
    throw new Fault('SwiftOperationError', { operation: 'put object', error: reasonOf(error) }, { cause: error });
  }
  throw new Fault('MissingParameterValue', {
    message:
      'Swift temporary URLs require a shared secret to be created. You must provide pre-generate the key on the project used to access Swift.',
  });
}
