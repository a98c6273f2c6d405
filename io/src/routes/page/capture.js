// Where picture and sound come from: camera and microphone, a screen, or a test pattern that needs no device.

/** Thrown by `capture`; the browser's own errors pass through with their `name`. `reason` is a word of words.js. */
class Nothing extends Error {
  constructor(reason) {
    super("");
    this.reason = reason;
  }
}

/**
 * @param {object} wanted
 * @param {"camera"|"screen"|"test"} wanted.source
 * @param {boolean} wanted.video
 * @param {boolean} wanted.audio
 * @param {string} wanted.camera device id, or empty for the browser's choice
 * @param {string} wanted.microphone device id, or empty
 * @param {number} wanted.height in pixels; 16:9
 * @param {number} wanted.rate frames per second
 * @param {boolean} wanted.processing echo cancellation, noise suppression and gain control: right for a voice, wrong for music
 * @returns {Promise<MediaStream>} at most one audio and one video track
 */
export async function capture(wanted) {
  const { source, video, audio } = wanted;
  if (!video && !audio) throw new Nothing("nothing");
  if (source === "test") return testPattern(wanted);
  if (!navigator.mediaDevices) throw new Nothing("insecure");
  const picture = {
    width: { ideal: widthOf(wanted.height) },
    height: { ideal: wanted.height },
    frameRate: { ideal: wanted.rate, max: wanted.rate },
  };
  const processing = wanted.processing;
  const sound = audio && {
    echoCancellation: processing,
    noiseSuppression: processing,
    autoGainControl: processing,
    ...(wanted.microphone && { deviceId: { exact: wanted.microphone } }),
  };
  if (source === "screen" && video) {
    // First, since it is allowed only shortly after a click.
    const screen = await navigator.mediaDevices.getDisplayMedia({ video: picture });
    for (const track of screen.getVideoTracks()) track.contentHint = "detail";
    try {
      const voice = sound ? await navigator.mediaDevices.getUserMedia({ audio: sound }) : null;
      return new MediaStream([...screen.getVideoTracks(), ...(voice?.getAudioTracks() ?? [])]);
    } catch (error) {
      release(screen);
      throw error;
    }
  }
  const camera = video && { ...picture, ...(wanted.camera && { deviceId: { exact: wanted.camera } }) };
  return navigator.mediaDevices.getUserMedia({ video: camera, audio: sound });
}

/** 16:9, and even: H.264 halves both sides for colour. */
const widthOf = (height) => Math.round((height * 8) / 9) * 2;

/** Switches cameras, microphones and patterns off. */
export function release(stream) {
  for (const track of stream?.getTracks() ?? []) track.stop();
  stream?.release?.();
}

/** A picture with a running clock, to the millisecond so that delay can be read off, and a tone of 440 Hz at -20 dB. */
function testPattern({ video, audio, height, rate }) {
  const stream = new MediaStream();
  const endings = [];
  if (video) {
    const canvas = Object.assign(document.createElement("canvas"), { width: widthOf(height), height });
    const draw = pattern(canvas);
    draw();
    // Not requestAnimationFrame: it stops when the tab is hidden.
    const timer = setInterval(draw, 1000 / rate);
    endings.push(() => clearInterval(timer));
    stream.addTrack(canvas.captureStream(rate).getVideoTracks()[0]);
  }
  if (audio) {
    const context = new AudioContext();
    const tone = new OscillatorNode(context, { frequency: 440 });
    const gain = new GainNode(context, { gain: 0.1 });
    const out = context.createMediaStreamDestination();
    tone.connect(gain).connect(out);
    tone.start();
    resumeOnGesture(context);
    endings.push(() => context.close());
    stream.addTrack(out.stream.getAudioTracks()[0]);
  }
  stream.release = () => endings.forEach((end) => end());
  return stream;
}

/** Browsers let no page make sound before somebody touched it. */
export function resumeOnGesture(context) {
  const resume = () => context.state === "suspended" && context.resume();
  for (const gesture of ["pointerdown", "keydown"]) addEventListener(gesture, resume, { passive: true });
}

function pattern(canvas) {
  const { width, height } = canvas;
  const pen = canvas.getContext("2d", { alpha: false });
  const bars = ["#c0c0c0", "#c0c000", "#00c0c0", "#00c000", "#c000c0", "#c00000", "#0000c0"];
  const unit = height / 18;
  let frame = 0;
  return () => {
    bars.forEach((colour, index) => {
      pen.fillStyle = colour;
      pen.fillRect((index * width) / bars.length, 0, width / bars.length + 1, height);
    });
    pen.fillStyle = "#101418";
    pen.fillRect(0, height * 0.62, width, height * 0.38);
    // A sweep shows at a glance whether frames are missing.
    pen.fillStyle = "#4fd1a5";
    pen.fillRect(((frame % 60) / 60) * width, height - unit, width / 60, unit);
    const now = new Date();
    pen.fillStyle = "#f4f6f8";
    pen.textAlign = "center";
    pen.font = `600 ${unit * 2.6}px ui-monospace, monospace`;
    const clock = [now.getHours(), now.getMinutes(), now.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
    pen.fillText(`${clock}.${String(now.getMilliseconds()).padStart(3, "0")}`, width / 2, height * 0.62 + unit * 3);
    pen.font = `${unit}px ui-monospace, monospace`;
    pen.fillText(`test pattern ${width}×${height}, frame ${frame}`, width / 2, height * 0.62 + unit * 5);
    frame += 1;
  };
}

/** Reads a stream's loudness: `level()` is the peak since the last call in dBFS, -60 at the least, or null while unknown. */
export class Meter {
  #context = null;
  #analyser = null;
  #source = null;
  #samples = null;

  /** Measures this stream from now on; null measures none. */
  listen(stream) {
    this.#source?.disconnect();
    this.#source = null;
    if (!stream?.getAudioTracks().length) return;
    if (!this.#context) {
      this.#context = new AudioContext();
      this.#analyser = new AnalyserNode(this.#context, { fftSize: 2048 });
      this.#samples = new Float32Array(this.#analyser.fftSize);
      resumeOnGesture(this.#context);
    }
    this.#source = this.#context.createMediaStreamSource(stream);
    this.#source.connect(this.#analyser);
  }

  level() {
    if (!this.#source || this.#context.state !== "running") return null;
    this.#analyser.getFloatTimeDomainData(this.#samples);
    const peak = this.#samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    return Math.max(-60, 20 * Math.log10(peak || 1e-6));
  }
}
