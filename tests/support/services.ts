/** The clients of OpenStack services with these options (`section.name` → value). */
import { systemClock } from '../../model/clock';
import { createServices, type Services } from '../../wire/keystone/services';

export const servicesOf = (options: object = {}): Services =>
  createServices(options, { clock: systemClock, signal: new AbortController().signal });
