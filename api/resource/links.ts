/** Links in answers. */
export interface Link {
  readonly href: string;
  readonly rel: string;
  readonly type?: string;
}

/** `self` under /v1 and `bookmark` without a version, as every resource has them. */
export const linksTo = (base: string, path: string): readonly Link[] => [
  { href: `${base}/v1/${path}`, rel: 'self' },
  { href: `${base}/${path}`, rel: 'bookmark' },
];
/** Where a new or changing thing is to be looked at. */
export const location = (base: string, path: string): Readonly<Record<string, string>> => ({ Location: `${base}/v1/${path}` });
