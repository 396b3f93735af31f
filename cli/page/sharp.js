"use strict";
// uPlot draws on a canvas with as many pixels as the device has. A printer has more than the screen, so
// that charts get at least two pixels for each of the page. This file stands before uPlot, which asks once.
{
  const screenPixels = window.devicePixelRatio;
  if (screenPixels < 2) Object.defineProperty(window, "devicePixelRatio", { get: () => 2 });
}
