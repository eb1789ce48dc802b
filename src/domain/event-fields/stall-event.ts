// stall-event.ts: the events of a delivery that stands still or falls behind, of late and failing answers, of
// a service that accepts nothing, of devices that are silent or repeat, and of messages that map to nothing.

import type { EpochMs } from '../../std/clock.ts'
import { count, field } from './event-fields.ts'

/** Why nothing of a provider moves although its endpoint is available. */
export type StallReason =
  | 'rate_limit'
  | 'no_place'
  | 'preparing'
  | 'batches_full'
  | 'failing'
  | 'forbidden_trial'
  | 'isolation'
  | 'acceptance'
  | 'dead_letters_full'
  | 'unknown'

/** The median gap, the pauses of the last days, the setting; `new`: too few messages to know. */
export type SilenceBasis = 'median' | 'days' | 'setting' | 'new'

/** What devices that fell silent together have in common: the address of their clients, a bridge, ... */
export type SilentPart = 'address' | 'bridge' | 'source' | 'provider' | 'all'

export type SilentDevice = { readonly device: string; readonly assetId: string; readonly lastAt: EpochMs }

const first = field<boolean>('false where only the numbers changed')

export const stallEventFields = {
  devices_not_mapped: {
    devices: count('devices whose messages give no payload; 0 where it is over'),
    sending: count('devices that send'),
    example: field<string>('key of one of them'),
    reasons: field<string>('the most frequent reasons, with their numbers of devices'),
    isMany: field<boolean>('they are a tenth of those that send, or more'),
    named: field<readonly string[]>(
      'keys of those that were mapped before, or are listed, and whose messages are kept',
    ),
  },
  devices_hours_off: {
    offsetMs: field<number>('arrival minus device time, in ms: whole hours, or hours and a half'),
    devices: count('devices whose clock is off by so much; 0 where it is over'),
    example: field<string>('key of one of them'),
  },
  devices_repeating: {
    devices: count('devices that send, and bring nothing new; 0 where it is over'),
    sending: count('devices that send'),
    example: field<string>('key of one of them'),
    isMany: field<boolean>('they are a tenth of those that send, or more'),
  },
  devices_silent: {
    sinceAt: field<EpochMs | null>('when the last message came, Unix time in ms; null where none ever came'),
    silentMs: field<number>('time without a message in this run, in ms'),
    limitMs: field<number>('longest pause that is usual, in ms'),
    basis: field<SilenceBasis>('what that is taken from'),
    quiet: field<boolean>('it is a quiet hour or day (ops.silence)'),
    first,
  },
  devices_sending: { by: field<'message' | 'config'>('what ended the silence') },
  device_silent: {
    devices: field<readonly SilentDevice[]>('those that are silent, the longest first; at most 200'),
    total: count('devices that are silent; 0 where none is any more'),
    of: count('devices that are known'),
  },
  fleet_part_silent: {
    part: field<SilentPart>('what they have in common'),
    name: field<string>('its name; empty where they have nothing in common'),
    devices: count('devices of the part that are silent; 0 where it is over'),
    of: count('devices of the part that sent in the hour before'),
    total: count('devices that are known'),
    lastAt: field<EpochMs | null>('when the last of them sent, Unix time in ms'),
    withinMs: field<number>('time between the last messages of the first and the last one, in ms'),
    examples: field<string>('keys of some of them'),
  },
  nothing_mapped: {
    messages: count('messages without a new payload'),
    duplicates: count('of these, the duplicates of earlier messages'),
    spanMs: field<number>('time in which they came, in ms'),
    reasons: field<string>('the most frequent reasons, with their numbers'),
  },
  nothing_mapped_ended: {},
} as const
