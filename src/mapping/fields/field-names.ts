// field-names.ts: the names that trackers give to position, time, speed and other values. They only help a
// person: the explanation of a message names the field that an unread key may be, and `learn` drafts a source
// from them. No mapping reads a value because of its name.

import { distance } from 'fastest-levenshtein'

/** From clear to vague, in lower case and without signs. */
export const fieldNames = {
  latitude: words('latitude lat gpslat gpslatitude positionlatitude'),
  longitude: words('longitude lon lng long gpslon gpslng gpslongitude positionlongitude'),
  time: words(
    'ts tst timestamp time fixtime gpstime devicetime datetime recordedat measuredat utc epoch ' +
      'unixtime gpsdatetime sampletime tm dt t',
  ),
  speed: words('speed spd vel velocity gpsspeed speedkmh speedkph speedmph speedms sp groundspeed kmh kph'),
  heading: words('heading hdg course cog bearing direction angle ang track crs brg dir'),
  device: words(
    'imei deviceid vin vehicleid ident device serial unitid trackerid devid serialno serialnumber ' +
      'sn deveui',
  ),
  odometer: words(
    'odometer odo odometerkm odokm odometerm odometermeters totalodometer vehicleodometer mileage ' +
      'totalmileage vehiclemileage totaldistance totalvehicledistance vehicledistance ' +
      'lifetimedistance totalkm kilometrage kilometerstand kmstand hrtotalvehicledistance hrvd ' +
      'totaldist distance dist km',
  ),
  hours: words(
    'enginehours hours totalenginehours enginetotalhours totalenginetime motorhours hourmeter ' +
      'enginerunhours enginetime enginerunningtime runtime eh',
  ),
} as const

function words(text: string): readonly string[] {
  return text.split(' ')
}

export type FieldName = keyof typeof fieldNames

const kinds = Object.keys(fieldNames) as FieldName[]

/** How the fields are called in sentences. */
const titles: Partial<Record<FieldName, string>> = { hours: 'engine hours' }

/** Shorter names are contained in too many words. */
const containedLengthMin = 5

/** The key in lower case, without signs: `Gps_Lat` is `gpslat`. */
export function plainKey(key: string): string {
  return key.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** The field that a key may be, in words; undefined where no name is similar. */
export function fieldNear(key: string): string | undefined {
  const plain = plainKey(key)
  const kind =
    kindWhere((name) => name === plain) ??
    kindWhere((name) => isMisspelt(plain, name)) ??
    kindWhere((name) => name.length >= containedLengthMin && plain.includes(name))
  return kind && (titles[kind] ?? kind)
}

function kindWhere(matches: (name: string) => boolean): FieldName | undefined {
  return kinds.find((kind) => fieldNames[kind].some(matches))
}

/** One letter of a word of six or more, two of a longer one. */
function isMisspelt(key: string, name: string): boolean {
  if (name.length < 6 || Math.abs(key.length - name.length) > 2 || key.length > 64) return false
  return distance(key, name) <= (name.length < 9 ? 1 : 2)
}
