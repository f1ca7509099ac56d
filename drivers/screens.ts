/**
 * Who looks at the screens of this process's machines: limits of number, and the rule that one user at a time controls a machine. Others
 * may look meanwhile.
 */
interface Seat {
  /** False: the viewer only looks. */
  readonly controls: boolean;
  leave(): void;
}
export interface Screens {
  /**
   * A place for a viewer. Who wishes to control a machine that another controls only looks.
   * @param hangUp ends the viewer's connection
   * @returns why there is none
   */
  readonly enter: (node: string, wish: 'control' | 'view', hangUp: (reason: string) => void) => Seat | { readonly refusal: string };
  isWatched(node: string): boolean;
  hangUp(node: string, reason: string): void;
}
interface Viewer {
  readonly controls: boolean;
  readonly hangUp: (reason: string) => void;
}

export function createScreens({ inAll, ofNode }: { readonly inAll: number; readonly ofNode: number }): Screens {
  const viewers = new Map<string, Set<Viewer>>();
  let taken = 0;
  return {
    enter(node, wish, hangUp) {
      const present = viewers.get(node) ?? new Set<Viewer>();
      if (taken >= inAll) return { refusal: 'Too many screens are open.' };
      if (present.size >= ofNode) return { refusal: 'Too many users look at this screen.' };
      const viewer = { controls: wish === 'control' && ![...present].some(({ controls }) => controls), hangUp };
      taken++;
      viewers.set(node, present.add(viewer));
      return {
        controls: viewer.controls,
        leave() {
          if (!present.delete(viewer)) return;
          taken--;
          if (present.size === 0) viewers.delete(node);
        },
      };
    },
    isWatched: (node) => viewers.has(node),
    hangUp(node, reason) {
      for (const viewer of viewers.get(node) ?? []) viewer.hangUp(reason);
    },
  };
}
