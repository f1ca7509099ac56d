/** @param percent of the command's work @param bytes of the image that it writes */
export type ReportProgress = (percent: number, bytes?: { readonly done: number; readonly of: number }) => void;
