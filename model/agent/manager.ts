/** The name of our agent's hardware manager: by it, the server tells our agent from others. */
export const MANAGER_NAME = 'BloomeryHardwareManager';
