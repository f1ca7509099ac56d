/** Jest's matchers with the types of the values for which they stand. */
export const like = (pattern: RegExp): string => expect.stringMatching(pattern) as string;
export const startsWith = (text: string): string => like(new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`));
export const anyText = (): string => expect.any(String) as string;
/** An error with these members. */
export const errorWith = (members: { readonly status?: number; readonly name?: string; readonly message?: string }): Error =>
  expect.objectContaining(members) as Error;
