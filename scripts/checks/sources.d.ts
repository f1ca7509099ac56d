export function sourceFiles(): readonly string[];
