/** @param percent how much of the command's work is done @param bytes how much of the image is written */
export type ReportProgress = (percent: number, bytes?: { readonly done: number; readonly of: number }) => void;
