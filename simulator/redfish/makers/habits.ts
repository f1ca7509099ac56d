/** All habits by name. Each file of habits has those of one subject or of one maker. */
import type { Habit } from '../protocol/habits';
import { BOOT_HABITS } from './boot';
import { DELL_HABITS } from './dell/habits';
import { ETAG_HABITS } from './etags';
import { EVENT_HABITS } from './events';
import { INVENTORY_HABITS } from './inventory';
import { LOGIN_HABITS } from './login';
import { MEDIA_HABITS } from './media';
import { SERVICE_HABITS } from './services';
import { TASK_HABITS } from './tasks';
import { UPDATE_HABITS } from './updates';
import { WRITE_HABITS } from './writes';

export const HABITS = {
  ...LOGIN_HABITS,
  ...ETAG_HABITS,
  ...WRITE_HABITS,
  ...TASK_HABITS,
  ...UPDATE_HABITS,
  ...BOOT_HABITS,
  ...INVENTORY_HABITS,
  ...MEDIA_HABITS,
  ...SERVICE_HABITS,
  ...EVENT_HABITS,
  ...DELL_HABITS,
} as const satisfies Readonly<Record<string, Habit>>;
export type HabitName = keyof typeof HABITS;
export const isHabit = (name: string): name is HabitName => Object.hasOwn(HABITS, name);
