-- For mpv: seeks to each of the given seconds, one after the other, as soon as it plays; then it plays on for two seconds and ends.
--
--     mpv --script=seek.lua --script-opts=seek-to=60:10:90 …
local options = { to = "" }
require("mp.options").read_options(options, "seek")

local left = {}
for second in options.to:gmatch("%d+") do
    table.insert(left, second)
end

mp.register_event("playback-restart", function()
    print("plays at " .. mp.get_property("time-pos", "?"))
    local second = table.remove(left, 1)
    if second then
        mp.add_timeout(0.5, function() mp.commandv("seek", second, "absolute") end)
    else
        mp.add_timeout(2, function() mp.command("quit") end)
    end
end)
