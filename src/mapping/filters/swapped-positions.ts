// swapped-positions.ts: warns of devices whose latitude and longitude are swapped, where the other positions
// of the fleet say so: the position is far from the fleet, and the swapped one is not.
//
// Nothing is corrected: the position is sent and counted as flagged. In memory only. The middle of the fleet
// is the median of the latitudes and longitudes, so that a few wrong devices do not move it.
//
// Bound: `devicesMax` devices make up the fleet, the first ones that send a position. Further devices are
// judged by the middle of those, and do not move it; they are counted as `beyond`. A fleet of that size has
// its middle where the whole fleet has it, unless the first devices are all of one place and the others are
// not: then those others may be shown as swapped where their swapped position is near that place.

export type Place = { latitude: number; longitude: number }

const fleetMin = 5
/** Share of the fleet that must be near its middle: a fleet all over the world says nothing. */
const nearShareMin = 0.6
const farKm = 1000
const nearKm = 500
/** The middle is computed again after so many positions. */
const middleEvery = 64

export function createSwappedPositions(devicesMax = 500) {
  const places = new Map<string, Place>()
  let middle: Place | null = null
  let since = middleEvery
  let beyond = 0
  return { isSwapped, counters: () => ({ devices: places.size, beyond }) }

  /** Notes the position of a device; whether it seems to be swapped. */
  function isSwapped(device: string, latitude: number, longitude: number): boolean {
    const place = { latitude, longitude }
    if (places.size < devicesMax || places.has(device)) places.set(device, place)
    else beyond += 1
    since += 1
    if (since >= middleEvery || (middle === null && places.size <= middleEvery)) {
      middle = middleOf([...places.values()])
      since = 0
    }
    if (middle === null || Math.abs(longitude) > 90) return false
    const swapped = { latitude: longitude, longitude: latitude }
    return distanceKm(place, middle) > farKm && distanceKm(swapped, middle) < nearKm
  }
}

/** Null where there are too few positions, or they are all over the world. */
function middleOf(places: readonly Place[]): Place | null {
  if (places.length < fleetMin) return null
  const middle = {
    latitude: median(places.map(({ latitude }) => latitude)),
    longitude: median(places.map(({ longitude }) => longitude)),
  }
  const near = places.filter((place) => distanceKm(place, middle) < nearKm).length
  return near >= fleetMin - 1 && near >= places.length * nearShareMin ? middle : null
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}

/** Good enough for hundreds of kilometres. */
function distanceKm(a: Place, b: Place): number {
  const kmPerDegree = 111
  const turn = Math.abs(a.longitude - b.longitude)
  const east = Math.min(turn, 360 - turn) * Math.cos((((a.latitude + b.latitude) / 2) * Math.PI) / 180)
  return Math.hypot(a.latitude - b.latitude, east) * kmPerDegree
}

/** Of `,"gps":{"latitude":51.3,"longitude":9.4,...}`. */
export function placeIn(gps: string): Place {
  const start = ',"gps":{"latitude":'.length
  const between = gps.indexOf(',"longitude":', start)
  const from = between + ',"longitude":'.length
  return {
    latitude: Number(gps.slice(start, between)),
    longitude: Number.parseFloat(gps.slice(from, from + 24)),
  }
}
