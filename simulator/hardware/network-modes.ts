/** The modes of the network card's functions: what they can be, and the start that applies changes. */
import { hardwarePart } from './hardware';

type Modes = Readonly<Record<string, string>>;
interface NetworkModesState {
  /** By the function's Id: modes other than Ethernet. */
  readonly current: Modes;
  /** The next start applies these. */
  readonly pending?: Modes;
  /** Changes take effect at once: there is no settings resource. */
  readonly immediate?: true;
}
export const NETWORK_MODES = hardwarePart<NetworkModesState>('networkModes', { current: {} });

export const MODES = ['Ethernet', 'FibreChannel', 'iSCSI', 'FibreChannelOverEthernet'] as const;
export const modeOf = (modes: Modes | undefined, id: string): string => modes?.[id] ?? MODES[0];

/** The modes after a start of the firmware. Returns the same object if nothing was pending. */
export function applyNetworkModes(state: NetworkModesState): NetworkModesState {
  if (!state.pending) return state;
  const { pending, ...rest } = state;
  return { ...rest, current: { ...state.current, ...pending } };
}
