/** A device that the inspection hook `accelerators` recognises: its PCI ids, and the properties that it gets. */
export type Accelerator = Readonly<Record<string, unknown>> & { readonly vendor_id: string; readonly device_id: string };
